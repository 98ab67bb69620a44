// Server: a cache, the connections to it, and their limits.

// Package memcached serves a cache by memcached's protocol: its classic text commands and its meta
// commands, as memcached 1.6 has them. The binary protocol is refused.
package memcached

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cache"
)

// Options are a server's limits. All are required but Idle.
type Options struct {
	MaxBytes int           // what the cache was made with
	MaxItem  int           // bytes of a key with its value
	MaxConns int           // connections beyond are told so and closed
	Write    time.Duration // a client that takes no reply for that long is disconnected; it waits for memory for twice as long
	Idle     time.Duration // a client that sends nothing for that long is disconnected; 0 is never

	// Heap has the memory of commands and replies: 56 KiB for each connection, and more for commands and
	// replies beyond 16 KiB. Buffers bounds that memory of all clients together, in bytes, and is at
	// least LeastBuffers(MaxItem). A client that keeps some of it while others wait is disconnected
	// after a second, and a second more for each 4 MiB.
	Heap    freehold.Allocator
	Buffers int

	Version string // for the command version: digits and dots, since clients parse it
	Build   string // the server's own version, for stats
	NoWatch bool   // refuse the command watch
}

// LeastBuffers returns the least that Options.Buffers may be: the largest command with the largest reply.
func LeastBuffers(maxItem int) int { return 2 * (maxItem + 8<<10) }

// A Server serves one cache to any number of connections.
type Server struct {
	cache   *cache.Cache
	options Options
	began   time.Time

	watchers watchers
	grants   grants
	dumping  sync.Mutex // held while keys are listed, which keeps memory of the cache

	mu         sync.Mutex // guards the following
	sessions   map[*session]struct{}
	closed     bool
	gone       totals // of sessions that have ended
	base       totals // at the last reset of the counters
	cacheAt    cache.Stats
	opened     uint64
	rejected   uint64
	handshakes uint64      // that failed
	flush      *time.Timer // of flush_all with a delay
	flushDue   time.Time   // when that is, or zero
	snapshots  [2]uint64   // written, and failed
	snapshotAt time.Time   // when the last was written
	done       sync.WaitGroup
}

// New returns a server of c, which must outlive it.
func New(c *cache.Cache, o Options) *Server {
	return &Server{
		cache: c, options: o, began: time.Now(), sessions: map[*session]struct{}{},
		grants: grants{limit: o.Buffers},
	}
}

// Session serves a client that is connected by conn until it leaves, which is no error, or until conn
// fails. It does not close conn. Deadlines and the limit on connections are those of Serve alone.
func (s *Server) Session(conn io.ReadWriter) error {
	se := &session{Server: s, conn: conn}
	if !s.enter(se, 0) {
		return nil
	}
	defer s.leave(se)
	return se.run()
}

// enter adds a session unless there are too many. limit is 0 for none.
func (s *Server) enter(se *session, limit int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	se.id = s.opened
	if s.closed || limit > 0 && len(s.sessions) >= limit {
		s.rejected++
		return false
	}
	s.sessions[se] = struct{}{}
	s.done.Add(1)
	return true
}

func (s *Server) leave(se *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, se)
	s.gone.add(&se.counts)
	s.done.Done()
}

// Serve accepts connections until l is closed, whose error it returns: [net.ErrClosed], if all is
// well. It may be called with several listeners.
func (s *Server) Serve(l net.Listener) error {
	for {
		conn, err := l.Accept()
		var temporary interface{ Temporary() bool } // out of file descriptors, for one
		switch {
		case errors.As(err, &temporary) && temporary.Temporary() && !errors.Is(err, net.ErrClosed):
			time.Sleep(10 * time.Millisecond)
			continue
		case err != nil:
			return err
		}
		go s.serve(conn)
	}
}

// serve serves one connection and closes it.
func (s *Server) serve(conn net.Conn) {
	defer conn.Close()
	d := &deadlined{
		Conn: conn, write: s.options.Write, idle: s.options.Idle,
		remote: addressOf(conn.RemoteAddr()), local: addressOf(conn.LocalAddr()),
	}
	d.wrote.Store(time.Now().UnixNano())
	se := &session{Server: s, conn: d}
	secret, isTLS := conn.(handshaker)
	if !s.enter(se, s.options.MaxConns) {
		if !isTLS { // a handshake would take as much as serving does
			conn.SetWriteDeadline(time.Now().Add(s.options.Write))
			io.WriteString(conn, "ERROR Too many open connections\r\n")
		}
		return
	}
	defer s.leave(se)
	if isTLS && !s.handshake(secret) {
		return
	}
	se.tellConnection("conn_new", "")
	se.run()
	reason := se.reason()
	switch reason {
	case "idle_timeout":
		se.counts[idleKicks].Add(1)
	case "too_slow":
		se.counts[slowKicks].Add(1)
	}
	se.tellConnection("conn_close", " reason="+reason)
}

// A handshaker is a connection that is to agree on keys first, such as [tls.Conn].
type handshaker interface {
	HandshakeContext(ctx context.Context) error
}

// handshake reports whether a client has shown in time who it is. A connection counts against MaxConns
// meanwhile.
func (s *Server) handshake(c handshaker) bool {
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTime)
	defer cancel()
	err := c.HandshakeContext(ctx)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.handshakes++
	}
	return err == nil
}

// failedHandshakes returns how many handshakes have failed.
func (s *Server) failedHandshakes() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.handshakes
}

// handshakeTime is how long a client may take to agree on keys.
const handshakeTime = 10 * time.Second

// Shutdown ends all sessions once they have replied to what they have read, and those that have not
// ended when ctx is done at once. Close the listeners before.
func (s *Server) Shutdown(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	if s.flush != nil {
		s.flush.Stop()
	}
	s.each(func(c net.Conn) { c.SetReadDeadline(past) })
	s.mu.Unlock()
	s.grants.close()
	cut := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.each(func(c net.Conn) { c.Close() })
	})
	defer cut()
	s.done.Wait()
}

// clear clears the cache after some time, and drops an earlier order to do so.
func (s *Server) clear(after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if s.flush != nil {
		s.flush.Stop()
		s.flush, s.flushDue = nil, time.Time{}
	}
	if after <= 0 {
		s.cache.Clear()
		return
	}
	s.flushDue = time.Now().Add(after)
	var order *time.Timer
	order = time.AfterFunc(after, func() { s.carryOut(order) })
	s.flush = order
}

// carryOut clears the cache, unless a later order has replaced this one.
func (s *Server) carryOut(order *time.Timer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flush == order && !s.closed {
		s.flush, s.flushDue = nil, time.Time{}
		s.cache.Clear()
	}
}

// FlushDue returns when a flush_all with a delay is due, and the zero time if none is. It is for a snapshot.
func (s *Server) FlushDue() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flushDue
}

// FlushAt is a flush_all at that time, which FlushDue of an earlier process has returned. A time that has passed
// is at once.
func (s *Server) FlushAt(t time.Time) { s.clear(time.Until(t)) }

// Saved counts a snapshot that was written, or could not be, for stats.
func (s *Server) Saved(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.snapshots[bit(err != nil)]++; err == nil {
		s.snapshotAt = time.Now()
	}
}

// saved returns how many snapshots were written and how many failed, and the Unix time of the last, or 0.
func (s *Server) saved() (written, failed, last uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.snapshotAt.IsZero() {
		last = uint64(s.snapshotAt.Unix())
	}
	return s.snapshots[0], s.snapshots[1], last
}

// totals returns what was counted since the last reset, and the figures of connections.
func (s *Server) totals() (t totals, conns int, opened, rejected uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := s.sum()
	return sum.since(&s.base), len(s.sessions), s.opened, s.rejected
}

// sum returns all that was ever counted. The caller holds mu.
func (s *Server) sum() totals {
	t := s.gone
	for se := range s.sessions {
		t.add(&se.counts)
	}
	return t
}

// reset makes all counters begin anew.
func (s *Server) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.base = s.sum()
	s.cacheAt = s.cache.Stats()
}

// counted returns the counters of the cache's figures since the last reset.
func (s *Server) counted(st cache.Stats) cache.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Sets -= s.cacheAt.Sets
	st.Evicted -= s.cacheAt.Evicted
	st.Expired -= s.cacheAt.Expired
	return st
}

// each calls f with all connections of Serve. The caller holds mu.
func (s *Server) each(f func(c net.Conn)) {
	for se := range s.sessions {
		if d, ok := se.conn.(*deadlined); ok {
			d.close(f)
		}
	}
}

// deadlined is a connection whose reads and writes fail when they take too long.
type deadlined struct {
	net.Conn
	write, idle   time.Duration
	remote, local string
	set           time.Time    // when the deadline of writes was set
	wrote         atomic.Int64 // when the last reply was written, or the connection began, in ns of Unix time

	mu      sync.Mutex // guards the following, and the deadlines
	closing bool
	wasCut  bool
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

// close calls f with the connection, and leaves the deadline of its reads alone from then on.
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

// waitForever makes reads wait for any time, unless close was called.
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
		}
		d.mu.Unlock()
	}
	return d.Conn.Read(p)
}

// Write sets a deadline from time to time only, since that costs as much as a short command: one of
// twice the time, when half of it has passed.
func (d *deadlined) Write(p []byte) (int, error) {
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
	return d.Conn.Write(p)
}
