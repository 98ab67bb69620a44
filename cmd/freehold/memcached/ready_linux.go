// Ready: a session of a TCP or Unix connection waits for input without a read in vain.
//
// The Read of package net tries the socket before it waits. The first try fails while the client
// waits for its reply. RawConn.Read calls a function whenever the socket has become readable. One
// such call lasts as long as the session here, since between two calls net forgets that the socket
// is readable.
//
// epoll tells each arrival once (edge-triggered). So a read that does not fill the buffer has all
// that has arrived, with one exception: the end of a connection that came together with the last
// input. A sweep looks for that end after some idle time. The first turns of a session also try to
// read before they wait, so that the short sessions of scripts end at once.

package memcached

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	tryingTurns = 2 // of a session, which read before they wait
	sweepTime   = 100 * time.Millisecond
)

// ready is the part of a connection that serveReady and sweep need.
type ready struct {
	raw    syscall.RawConn // nil if package net reads the connection
	direct bool            // serveReady runs, with fd
	fd     int

	turns   atomic.Uint64 // twice the turns before the current wait, and 1 if the last has found nothing
	swept   uint64        // turns at the last sweep; Server.mu guards it
	checked uint64        // turns at the last look for the end; Server.mu guards it
}

// begin sets raw for a new connection.
func (r *ready) begin(conn net.Conn) {
	switch conn.(type) {
	case *net.TCPConn, *net.UnixConn: // not TLS
		r.raw, _ = conn.(syscall.Conn).SyscallConn()
	}
}

// is reports whether read and write are for the current call.
func (r *ready) is() bool { return r.direct }

// read reads without waiting.
func (r *ready) read(p []byte) (int, error) {
	for {
		switch n, err := quickly(syscall.SYS_READ, r.fd, p); {
		case err == syscall.EINTR:
		case err == syscall.EAGAIN:
			return 0, errNotReady
		case err != 0:
			return 0, os.NewSyscallError("read", err)
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// write writes the bytes that the socket takes without waiting, and returns their number. For an
// error it returns 0: the next write meets the error again.
func (r *ready) write(p []byte) int {
	n, err := quickly(syscall.SYS_WRITE, r.fd, p)
	if err != 0 {
		return 0
	}
	return n
}

// quickBytes is the most that quickly copies without telling the scheduler: a collection has to wait
// for it.
const quickBytes = 64 << 10

// quickly makes a call of read or write that does not wait. With one connection, telling the
// scheduler of it would take a quarter of the server's time.
func quickly(call uintptr, fd int, p []byte) (n int, err syscall.Errno) {
	var done uintptr
	if at := unsafe.Pointer(unsafe.SliceData(p)); len(p) <= quickBytes {
		done, _, err = syscall.RawSyscall(call, uintptr(fd), uintptr(at), uintptr(len(p)))
	} else {
		done, _, err = syscall.Syscall(call, uintptr(fd), uintptr(at), uintptr(len(p)))
	}
	return int(done), err
}

// serveReady runs the session of a TCP or Unix connection until it ends or becomes a watcher.
func (s *session) serveReady(d *deadlined) {
	r := &d.ready
	if r.raw == nil {
		return
	}
	for turns := uint64(0); s.err == nil && s.watcher == nil; {
		err := r.raw.Read(func(fd uintptr) (done bool) {
			r.fd, r.direct = int(fd), true
			found := fullInput
			for ; s.err == nil && s.watcher == nil && (found == fullInput || found == someInput && turns <= tryingTurns); turns++ {
				if found = s.turn(); found == fullInput && d.isClosing() {
					s.err = os.ErrDeadlineExceeded // a read without waiting does not meet it
				}
			}
			r.turns.Store(2*turns + uint64(bit(found == noInput)))
			s.sweeper.arm(s.Server)
			s.lendWorkspace()
			return s.err != nil || s.watcher != nil
		})
		r.direct = false
		switch {
		case err == nil || s.err != nil:
		case errors.Is(err, os.ErrDeadlineExceeded) && d.endKick():
		default:
			s.err = err
		}
	}
}

// A sweeper runs sweep while there are sessions to look at.
type sweeper struct{ armed atomic.Bool }

func (w *sweeper) arm(s *Server) {
	if !w.armed.Load() && w.armed.CompareAndSwap(false, true) {
		time.AfterFunc(sweepTime, s.sweep)
	}
}

// sweep looks for the end of connections that have been idle since the last sweep, and notes when
// the others were active.
func (s *Server) sweep() {
	s.sweeper.armed.Store(false)
	var idle []*deadlined
	isActive := false
	s.mu.Lock()
	for se := range s.sessions {
		d, ok := se.conn.(*deadlined)
		if !ok || d.ready.raw == nil {
			continue
		}
		r, turns := &d.ready, d.ready.turns.Load()
		switch {
		case turns != r.swept:
			r.swept, isActive = turns, true
			d.wrote.Store(time.Now().UnixNano())
		case turns != r.checked:
			r.checked = turns
			if turns%2 == 0 {
				idle = append(idle, d)
			}
		}
	}
	s.mu.Unlock()
	for _, d := range idle {
		if d.ready.hasInput() {
			d.kick()
		}
	}
	if isActive {
		s.sweeper.arm(s)
	}
}

// hasInput reports whether a read would not wait.
func (r *ready) hasInput() (has bool) {
	r.raw.Control(func(fd uintptr) {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		has = err != syscall.EAGAIN && err != syscall.EINTR
	})
	return has
}

// kick makes the session read, unless close was called.
func (d *deadlined) kick() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closing {
		d.kicked = true
		d.SetReadDeadline(past)
	}
}

// endKick reports whether kick has set the deadline of reads. If so, it removes the deadline.
func (d *deadlined) endKick() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.kicked || d.closing {
		return false
	}
	d.kicked = false
	d.SetReadDeadline(time.Time{})
	return true
}
