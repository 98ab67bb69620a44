// Server: a cache, the sessions of its clients, and their limits.

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

// Options are a server's limits and abilities. Those above Version are required, except Idle.
type Options struct {
	MaxBytes int           // of the cache's options
	MaxItem  int           // bytes of a key with its value
	MaxConns int           // connections beyond it get an error and are closed
	Write    time.Duration // a client that takes no reply for Write to twice Write is disconnected
	Idle     time.Duration // a client that sends nothing for this time is disconnected; 0 is never

	// Heap has the memory of commands and replies: 56 KiB for each connection, and large buffers
	// for commands and replies beyond 16 KiB. Buffers is the bound, in bytes, of all large buffers
	// together, at least LeastBuffers(MaxItem). Clients wait for a large buffer up to twice Write. A
	// client that keeps one while other clients wait is disconnected after a second, and a second
	// more for each 4 MiB.
	Heap    freehold.Allocator
	Buffers int

	Version string // for the command version: digits and dots, since clients parse it
	Build   string // the server's own version, for stats
	NoWatch bool   // refuse the command watch
	KeepAll bool   // the cache has cache.Options.KeepAll; only stats settings says it

	// Admits reports whether user and password are known. If Admits is set, clients must
	// authenticate first. Several goroutines may call it.
	Admits func(user, password []byte) bool
	Reload func() error // for the command refresh_certs, unless nil
	Stop   func()       // for the command shutdown, unless nil; it must not wait for Shutdown
}

// LeastBuffers returns the minimum of Options.Buffers: the largest command and the largest reply.
func LeastBuffers(maxItem int) int { return 2 * (maxItem + 8<<10) }

// A Server serves one cache to any number of connections.
type Server struct {
	cache   *cache.Cache
	options Options
	began   time.Time

	loading  atomic.Bool  // a snapshot is being loaded
	reloaded atomic.Int64 // the Unix time in ns at which refresh_certs, or else the server, began

	watchers watchers
	grants   grants
	sweeper  sweeper
	spares   spares
	dumping  sync.Mutex // held while keys are listed, since a list pins memory of the cache

	mu         sync.Mutex // guards the following
	sessions   map[*session]struct{}
	closed     bool
	gone       totals // of sessions that have ended
	base       totals // at the last reset of the counters
	cacheAt    cache.Stats
	opened     uint64
	rejected   uint64
	handshakes uint64      // failed ones
	flush      *time.Timer // of flush_all with a delay
	flushDue   time.Time   // the time of that, or zero
	orders     uint64      // of flush_all so far
	snapshots  [2]uint64   // written, and failed
	snapshotAt time.Time   // when the last snapshot was written
	done       sync.WaitGroup
}

// New returns a server of c, which must outlive it.
func New(c *cache.Cache, o Options) *Server {
	s := &Server{
		cache: c, options: o, began: time.Now(), sessions: map[*session]struct{}{},
		grants: grants{limit: o.Buffers},
	}
	s.reloaded.Store(s.began.UnixNano())
	return s
}

// Session serves the client of conn until it leaves, and returns nil, or until conn fails. It does
// not close conn. Deadlines and the limit on connections apply to Serve alone.
func (s *Server) Session(conn io.ReadWriter) error {
	se := &session{Server: s, conn: conn}
	if s.enter(se, 0) != nil {
		return nil
	}
	defer s.leave(se)
	return se.run()
}

// enter adds a session, unless the server is closed or has limit sessions. A limit of 0 is none.
func (s *Server) enter(se *session, limit int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	se.id = s.opened
	switch {
	case s.closed:
		return errClosed
	case limit > 0 && len(s.sessions) >= limit:
		s.rejected++
		return errTooMany
	}
	s.sessions[se] = struct{}{}
	s.done.Add(1)
	return nil
}

var (
	errClosed  = errors.New("memcached: the server is shut down")
	errTooMany = errors.New("memcached: too many connections")
)

func (s *Server) leave(se *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, se)
	s.gone.add(&se.counts)
	if len(s.sessions) == 0 {
		s.spares.free(s.options.Heap)
	}
	s.done.Done()
}

// Serve accepts connections until l fails, and returns the error, which is [net.ErrClosed] once l
// is closed. Several calls may serve several listeners.
func (s *Server) Serve(l net.Listener) error {
	for {
		conn, err := l.Accept()
		var temporary interface{ Temporary() bool } // such as out of file descriptors
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
	d.ready.begin(conn)
	se := &session{Server: s, conn: d}
	secret, isTLS := conn.(handshaker)
	if err := s.enter(se, s.options.MaxConns); err != nil {
		if err == errTooMany && !isTLS { // a handshake for the error would cost as much as a session
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

// A handshaker is a connection that begins with a handshake, such as [tls.Conn].
type handshaker interface {
	HandshakeContext(ctx context.Context) error
}

// handshake reports whether the handshake has succeeded in time. Its connection counts against
// MaxConns.
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

// failedHandshakes returns the number of failed handshakes.
func (s *Server) failedHandshakes() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.handshakes
}

// handshakeTime is the time limit of a handshake.
const handshakeTime = 10 * time.Second

// Shutdown ends each session after it has replied to the commands that it has read. When ctx is
// done, it ends the reads and writes of the remaining ones. Close the listeners first.
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
		s.each(func(c net.Conn) { c.SetDeadline(past) }) // Close would wait for sessions, and they for mu
	})
	defer cut()
	s.done.Wait()
}

// clear clears the cache after a delay, and cancels an earlier order.
func (s *Server) clear(after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.orders++
	if s.flush != nil {
		s.flush.Stop()
		s.flush, s.flushDue = nil, time.Time{}
	}
	if after <= 0 {
		s.cache.Clear()
		return
	}
	s.flushDue = time.Now().Add(after)
	order := s.orders
	s.flush = time.AfterFunc(after, func() { s.carryOut(order) })
}

// carryOut clears the cache, unless a later order has replaced this one.
func (s *Server) carryOut(order uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.orders == order && !s.closed {
		s.flush, s.flushDue = nil, time.Time{}
		s.cache.Clear()
	}
}

// FlushDue returns the time of a pending flush_all, or the zero time. A snapshot stores it.
func (s *Server) FlushDue() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flushDue
}

// FlushAt orders a flush_all at a time that FlushDue of an earlier process has returned. If the
// time has passed, it clears the cache at once.
func (s *Server) FlushAt(t time.Time) { s.clear(time.Until(t)) }

// Loading says whether a snapshot is being loaded, for stats.
func (s *Server) Loading(is bool) { s.loading.Store(is) }

// Saved counts a snapshot for stats. err is the error of a failed one.
func (s *Server) Saved(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.snapshots[bit(err != nil)]++; err == nil {
		s.snapshotAt = time.Now()
	}
}

// saved returns the numbers of written and failed snapshots, and the Unix time of the last one
// written, or 0.
func (s *Server) saved() (written, failed, last uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.snapshotAt.IsZero() {
		last = uint64(s.snapshotAt.Unix())
	}
	return s.snapshots[0], s.snapshots[1], last
}

// totals returns the counters since the last reset, and the numbers of open, accepted and rejected
// connections.
func (s *Server) totals() (t totals, conns int, opened, rejected uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := s.sum()
	return sum.since(&s.base), len(s.sessions), s.opened, s.rejected
}

// sum returns the counters since the start. The caller holds mu.
func (s *Server) sum() totals {
	t := s.gone
	for se := range s.sessions {
		t.add(&se.counts)
	}
	return t
}

// reset sets all counters to 0.
func (s *Server) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.base = s.sum()
	s.cacheAt = s.cache.Stats()
}

// counted returns st with its counters since the last reset.
func (s *Server) counted(st cache.Stats) cache.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Sets -= s.cacheAt.Sets
	st.Evicted -= s.cacheAt.Evicted
	st.Expired -= s.cacheAt.Expired
	return st
}

// each calls f with each network connection. The caller holds mu.
func (s *Server) each(f func(c net.Conn)) {
	for se := range s.sessions {
		if d, ok := se.conn.(*deadlined); ok {
			d.close(f)
		}
	}
}
