// Deadlined: a connection with time limits on reads and writes.

package memcached

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// A deadlined is the network connection of a session. Other goroutines may change its deadlines.
type deadlined struct {
	net.Conn
	write, idle   time.Duration
	remote, local string
	set           time.Time    // when the deadline of writes was set
	wrote         atomic.Int64 // when the last reply was written or the connection began, Unix time in ns
	ready         ready        // see ready_linux.go

	mu      sync.Mutex // guards the following, and the deadlines
	closing bool
	wasCut  bool
	kicked  bool // the deadline of reads is that of kick
}

// past is a deadline that ends a read or write at once.
var past = time.Unix(1, 0)

// cut ends all reads and writes at once.
func (d *deadlined) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closing, d.wasCut = true, true
	d.SetDeadline(past)
}

// isCut reports whether cut was called.
func (d *deadlined) isCut() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wasCut
}

// close calls f with the connection. From then on, reads do not change their deadline.
func (d *deadlined) close(f func(net.Conn)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closing = true
	f(d.Conn)
}

// isClosing reports whether close was called.
func (d *deadlined) isClosing() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closing
}

// waitForever removes the deadline of reads, unless close was called.
func (d *deadlined) waitForever() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.idle = 0; !d.closing {
		d.SetReadDeadline(time.Time{})
	}
}

func (d *deadlined) Read(p []byte) (int, error) {
	if d.idle > 0 {
		d.mu.Lock()
		if !d.closing {
			d.SetReadDeadline(time.Now().Add(d.idle))
			d.kicked = false
		}
		d.mu.Unlock()
	}
	if d.ready.is() {
		return d.ready.read(p)
	}
	return d.Conn.Read(p)
}

// Write writes p. If it has to wait, it sets a deadline of twice the limit, unless one of the last
// limit is set: a deadline for each Write would cost as much as a short command.
func (d *deadlined) Write(p []byte) (int, error) {
	n := 0
	if d.ready.is() {
		if n = d.ready.write(p); n == len(p) {
			return n, nil
		}
	}
	rest, err := d.writeInTime(p[n:])
	return n + rest, err
}

func (d *deadlined) writeInTime(p []byte) (int, error) {
	now := time.Now()
	d.wrote.Store(now.UnixNano())
	if now.Sub(d.set) >= d.write {
		d.set = now
		d.mu.Lock()
		if !d.wasCut {
			d.SetWriteDeadline(now.Add(2 * d.write))
		}
		d.mu.Unlock()
	}
	n, err := d.Conn.Write(p)
	if errors.Is(err, os.ErrDeadlineExceeded) && !d.isClosing() {
		d.cut() // the session's reason to end
	}
	return n, err
}
