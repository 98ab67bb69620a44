package memcached

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener whose connections are net.Pipes.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return nil }

// dial returns the client's side of a connection.
func (p *pipes) dial() net.Conn {
	server, client := net.Pipe()
	p.conns <- server
	return client
}

// serving runs f in a bubble with a server of pipes, which takes no reply for a second at most.
func serving(t *testing.T, o func(*Options), f func(t *testing.T, s *Server, p *pipes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, p := newServer(t), newPipes()
		s.options.Write = time.Second
		if o != nil {
			o(&s.options)
		}
		s.grants.limit = s.options.Buffers
		served := make(chan error)
		go func() { served <- s.Serve(p) }()
		f(t, s, p)
		p.Close()
		if err := <-served; err != net.ErrClosed {
			t.Errorf("Serve = %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.Shutdown(ctx)
	})
}

// ask sends a command and returns a line of its reply.
func ask(t *testing.T, c net.Conn, say string) string {
	t.Helper()
	go io.WriteString(c, say)
	line, err := bufio.NewReaderSize(c, 16).ReadString('\n')
	if err != nil {
		t.Errorf("after %q: %q, %v", say, line, err)
	}
	return line
}

// ended reports whether the server has closed the connection, or does so without a wait.
func ended(c net.Conn) bool {
	now := time.Now()
	_, err := io.Copy(io.Discard, c)
	return err == nil && time.Since(now) == 0
}

func TestTooManyConnections(t *testing.T) {
	serving(t, nil, func(t *testing.T, s *Server, p *pipes) {
		first, second := p.dial(), p.dial()
		synctest.Wait()
		third := p.dial()
		if got, err := io.ReadAll(third); string(got) != "ERROR Too many open connections\r\n" || err != nil {
			t.Errorf("the third of two got %q, %v", got, err)
		}
		first.Close()
		synctest.Wait()
		fourth := p.dial()
		if got := ask(t, fourth, "mn\r\n"); got != "MN\r\n" {
			t.Errorf("the third after the first has left got %q", got)
		}
		if _, conns, opened, rejected := s.totals(); conns != 2 || opened != 4 || rejected != 1 {
			t.Errorf("%d connections, %d opened, %d rejected", conns, opened, rejected)
		}
		second.Close()
		synctest.Wait()
		s.options.MaxConns = 1
		fifth := p.dial()
		if got, err := io.ReadAll(fifth); !strings.HasPrefix(string(got), "ERROR") || err != nil {
			t.Errorf("the second of one got %q, %v", got, err)
		}
		fourth.Close()
	})
}

// A handshaking connection agrees on keys when its client says so.
type handshaking struct {
	net.Conn
	agree chan error
}

func (h *handshaking) HandshakeContext(ctx context.Context) error {
	select {
	case err := <-h.agree:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// dialSecret is dial of a connection that begins with a handshake.
func (p *pipes) dialSecret() (client net.Conn, agree chan error) {
	server, client := net.Pipe()
	h := &handshaking{server, make(chan error, 1)}
	p.conns <- h
	return client, h.agree
}

// A handshake counts against the limit on connections, and ends in time. Beyond the limit there is
// none.
func TestHandshakes(t *testing.T) {
	serving(t, nil, func(t *testing.T, s *Server, p *pipes) {
		good, agree := p.dialSecret()
		silent, _ := p.dialSecret()
		synctest.Wait()
		third, _ := p.dialSecret()
		if got, err := io.ReadAll(third); len(got) > 0 || err != nil {
			t.Errorf("a third of two got %q, %v before a handshake", got, err)
		}
		agree <- nil
		if got := ask(t, good, "mn\r\n"); got != "MN\r\n" {
			t.Errorf("after a handshake: %q", got)
		}
		time.Sleep(handshakeTime + 1)
		synctest.Wait()
		if !ended(silent) {
			t.Error("a client that shows no key in time is connected")
		}
		bad, agree := p.dialSecret()
		agree <- io.ErrUnexpectedEOF
		if !ended(bad) {
			t.Error("a client whose handshake has failed is connected")
		}
		if got := ask(t, good, "mn\r\n"); got != "MN\r\n" {
			t.Errorf("later: %q", got)
		}
		if n := statOf(t, s, "failed_handshakes"); n != 2 {
			t.Errorf("%d failed handshakes of 2", n)
		}
		good.Close()
	})
}

// A client that takes no replies is disconnected, and one that takes them slowly is not.
func TestSlowReaders(t *testing.T) {
	serving(t, nil, func(t *testing.T, s *Server, p *pipes) {
		stuck, slow := p.dial(), p.dial()
		for range 3 {
			io.WriteString(slow, "mn\r\n")
			time.Sleep(900 * time.Millisecond)
			if _, err := io.ReadFull(slow, make([]byte, 4)); err != nil {
				t.Fatalf("a reader that takes 0.9 of the time: %v", err)
			}
		}
		io.WriteString(stuck, "mn\r\n")
		time.Sleep(2*time.Second + 1)
		synctest.Wait()
		if !ended(stuck) {
			t.Error("a reader that takes no reply is still connected after twice the time")
		}
		synctest.Wait()
		if total, _, _, _ := s.totals(); total[slowKicks] != 1 || total[idleKicks] != 0 {
			t.Errorf("it was counted as %d slow and %d idle", total[slowKicks], total[idleKicks])
		}
		slow.Close()
	})
}

func TestIdle(t *testing.T) {
	serving(t, func(o *Options) { o.Idle = time.Minute }, func(t *testing.T, s *Server, p *pipes) {
		c := p.dial()
		for range 3 {
			time.Sleep(59 * time.Second)
			ask(t, c, "mn\r\n")
		}
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if !ended(c) {
			t.Error("a client that is idle for longer than a minute is connected")
		}
		if total, _, _, _ := s.totals(); total[idleKicks] != 1 {
			t.Errorf("%d idle kicks", total[idleKicks])
		}
	})
}

// A server that stops replies to the commands that it has read, and waits for clients until the
// context is done.
func TestShutdown(t *testing.T) {
	serving(t, func(o *Options) { o.Write = time.Hour }, func(t *testing.T, s *Server, p *pipes) {
		waits, stuck := p.dial(), p.dial()
		if got := ask(t, waits, "mn\r\n"); got != "MN\r\n" {
			t.Errorf("a client got %q", got)
		}
		io.WriteString(stuck, "mn\r\nset a 0 0 5\r\n")
		io.WriteString(waits, "set b 0 0 5\r\nab")
		synctest.Wait()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s.Shutdown(ctx)
		if took := time.Since(began); took != time.Minute {
			t.Errorf("Shutdown with a client that does not read took %v, want a minute", took)
		}
		if !ended(waits) || !ended(stuck) {
			t.Error("clients are connected after Shutdown")
		}
		if got := talk(t, s, "mn\r\n"); got != "" {
			t.Errorf("a server that is shut down said %q", got)
		}
		if got, err := io.ReadAll(p.dial()); len(got) > 0 || err != nil {
			t.Errorf("a client that comes later got %q, %v", got, err)
		}
	})
}

// A server whose clients are silent, or in a handshake, stops at once.
func TestShutdownOfSilentClients(t *testing.T) {
	serving(t, nil, func(t *testing.T, s *Server, p *pipes) {
		c, began := p.dial(), time.Now()
		ask(t, c, "mn\r\n")
		s.Shutdown(t.Context())
		if took := time.Since(began); took > 0 || !ended(c) {
			t.Errorf("Shutdown took %v", took)
		}
	})
}

// A connection that was cut while it was between two calls fails the next one at once.
func TestCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := net.Pipe()
		defer client.Close()
		d := &deadlined{Conn: server, write: time.Minute, idle: time.Minute}
		began := time.Now()
		d.cut()
		_, readErr := d.Read(make([]byte, 1))
		_, writeErr := d.Write([]byte("x"))
		if !errors.Is(readErr, os.ErrDeadlineExceeded) || !errors.Is(writeErr, os.ErrDeadlineExceeded) || time.Since(began) > 0 {
			t.Errorf("%v and %v after %v", readErr, writeErr, time.Since(began))
		}
	})
}

func TestFlushLater(t *testing.T) {
	serving(t, nil, func(t *testing.T, s *Server, p *pipes) {
		talk(t, s, "set a 0 0 1\r\n1\r\nflush_all 10\r\n")
		time.Sleep(9 * time.Second)
		talk(t, s, "set b 0 0 1\r\n1\r\n")
		if got := talk(t, s, "mg a\r\nmg b\r\n"); got != "HD\r\nHD\r\n" {
			t.Errorf("before the time: %q", got)
		}
		time.Sleep(time.Second + 1)
		synctest.Wait()
		if got := talk(t, s, "mg a\r\nmg b\r\n"); got != "EN\r\nEN\r\n" {
			t.Errorf("after the time: %q", got)
		}
		talk(t, s, "set a 0 0 1\r\n1\r\nflush_all 5\r\nflush_all 100\r\n")
		time.Sleep(6 * time.Second)
		if got := talk(t, s, "mg a\r\n"); got != "HD\r\n" {
			t.Errorf("after the time of the order that a later one replaced: %q", got)
		}
		s.carryOut(s.orders - 1) // an order that was replaced when it was due
		if got := talk(t, s, "mg a\r\n"); got != "HD\r\n" {
			t.Errorf("an order that was replaced is carried out: %q", got)
		}
		if due := s.FlushDue(); time.Until(due) != 94*time.Second {
			t.Errorf("the order is due in %v", time.Until(due))
		}
		other := newServer(t) // of another process
		talk(t, other, "set a 0 0 1\r\n1\r\n")
		other.FlushAt(s.FlushDue())
		if got := talk(t, other, "mg a\r\n"); got != "HD\r\n" {
			t.Errorf("before the time, elsewhere: %q", got)
		}
		time.Sleep(94*time.Second + 1)
		synctest.Wait()
		if got := talk(t, s, "mg a\r\n") + talk(t, other, "mg a\r\n"); got != "EN\r\nEN\r\n" || !s.FlushDue().IsZero() {
			t.Errorf("after the time, here and elsewhere: %q", got)
		}
		talk(t, s, "set a 0 0 1\r\n1\r\nflush_all 5\r\nflush_all\r\nset a 0 0 1\r\n1\r\n")
		if !s.FlushDue().IsZero() {
			t.Error("an order is due that one without a delay has replaced")
		}
		other.FlushAt(time.Now().Add(-time.Hour))
		if n := other.cache.Len(); n > 0 {
			t.Errorf("%d items after an order that was due before", n)
		}
		talk(t, s, "flush_all 5\r\n")
		s.Shutdown(t.Context())
		time.Sleep(time.Hour)
		if s.FlushDue().IsZero() || s.cache.Len() != 1 {
			t.Error("an order that was due after Shutdown was carried out, or is forgotten")
		}
	})
}

func TestExptimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		time.Sleep(time.Second / 2)
		now := time.Now().Unix()
		for _, tt := range []struct {
			exptime int64
			lives   time.Duration // 0 is not at all, -1 forever
		}{
			{now - 5, 0}, {now, 0}, {now + 20, 20 * time.Second}, {0, -1}, {-1, 0}, {10, 10 * time.Second}, {relative, relative * time.Second},
			{relative + 1, 0},
		} {
			talk(t, s, fmt.Sprintf("set a 0 %d 1\r\n1\r\n", tt.exptime))
			if got := talk(t, s, "mg a\r\n"); (got == "HD\r\n") != (tt.lives != 0) {
				t.Errorf("exptime %d: %q at once", tt.exptime, got)
			}
			if tt.lives <= 0 {
				continue
			}
			time.Sleep(tt.lives - time.Second)
			if got := talk(t, s, "mg a\r\n"); got != "HD\r\n" {
				t.Errorf("exptime %d: %q a second before", tt.exptime, got)
			}
			time.Sleep(2 * time.Second)
			if got := talk(t, s, "mg a\r\n"); got != "EN\r\n" {
				t.Errorf("exptime %d: %q a second after", tt.exptime, got)
			}
		}
	})
}

// A counter that is raised all the time expires all the same.
func TestWritesKeepTheExpiry(t *testing.T) {
	for _, write := range []string{"incr a 1\r\n", "ma a\r\n", "append a 0 0 1\r\n1\r\n", "mg a R100\r\nmd a I\r\n"} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t)
			time.Sleep(time.Second / 3)
			talk(t, s, "set a 0 10 1\r\n1\r\n")
			for range 110 {
				time.Sleep(time.Second / 10)
				talk(t, s, write)
			}
			if got := talk(t, s, "mg a\r\n"); got != "EN\r\n" {
				t.Errorf("%q ten times a second: %q after 11 s", write, got)
			}
		})
	}
}

func TestStats(t *testing.T) {
	s := newServer(t)
	talk(t, s, "set a 0 0 1\r\n1\r\nget a b\r\nincr a 1\r\nincr b 1\r\ndecr a 1\r\ndelete b\r\ntouch a 0\r\ntouch b 0\r\ncas a 0 0 1 1\r\n1\r\nset c 0 0 100000\r\n")
	got := talk(t, s, "stats\r\n")
	for _, want := range []string{"cmd_get 2", "get_hits 1", "get_misses 1", "cmd_set 2", "incr_hits 1", "incr_misses 1", "decr_hits 1", "delete_misses 1",
		"touch_hits 1", "touch_misses 1", "cas_badval 1", "store_too_large 1", "curr_items 1", "version 1.6.45", "freehold_version test", "curr_connections 1"} {
		if !strings.Contains(got, "STAT "+want+"\r\n") {
			t.Errorf("no %q in %q", want, got)
		}
	}
	if got := talk(t, s, "stats reset\r\nstats\r\n"); !strings.Contains(got, "STAT cmd_get 0\r\n") {
		t.Errorf("after a reset: %q", got)
	}
	if got := talk(t, s, "set a 0 0 1\r\n1\r\nget a\r\nstats slabs\r\n"); !strings.Contains(got, "STAT 1:get_hits 1\r\n") || !strings.Contains(got, "STAT 1:cmd_set 1\r\n") {
		t.Errorf("stats slabs: %q", got)
	}
	for _, more := range []string{"settings", "items", "slabs", "sizes"} {
		if got := talk(t, s, "stats "+more+"\r\n"); !strings.HasSuffix(got, "END\r\n") {
			t.Errorf("stats %s: %q", more, got)
		}
	}
}

func TestStatsConns(t *testing.T) {
	serving(t, nil, func(t *testing.T, s *Server, p *pipes) {
		first := p.dial()
		synctest.Wait()
		second := p.dial()
		time.Sleep(5 * time.Second)
		go io.WriteString(second, "stats conns\r\nquit\r\n")
		got, _ := io.ReadAll(second)
		const want = "STAT 1:addr pipe:pipe\r\nSTAT 1:listen_addr pipe:pipe\r\nSTAT 1:state conn_read\r\nSTAT 1:secs_since_last_cmd 5\r\n" +
			"STAT 2:addr pipe:pipe\r\nSTAT 2:listen_addr pipe:pipe\r\nSTAT 2:state conn_parse_cmd\r\nSTAT 2:secs_since_last_cmd 5\r\nEND\r\n"
		if string(got) != want {
			t.Errorf("%q, want %q", got, want)
		}
		first.Close()
	})
}

// stats reset and stats count sessions that go on.
func TestResetOfOpenSessions(t *testing.T) {
	serving(t, nil, func(t *testing.T, s *Server, p *pipes) {
		c := p.dial()
		ask(t, c, "set a 0 0 1\r\n1\r\n")
		if n := statOf(t, s, "cmd_set"); n != 1 {
			t.Errorf("%d sets of 1", n)
		}
		talk(t, s, "stats reset\r\n")
		if n := statOf(t, s, "cmd_set"); n != 0 {
			t.Errorf("%d sets after a reset", n)
		}
		ask(t, c, "set a 0 0 1\r\n1\r\n")
		c.Close()
		synctest.Wait()
		if n := statOf(t, s, "cmd_set"); n != 1 {
			t.Errorf("%d sets of 1 after a reset, when the client has left", n)
		}
	})
}

// A tired listener fails: with temporary errors first, whose number it counts down, and then for
// good.
type tired struct {
	net.Listener
	temporary int
}

type temporaryError struct{ error }

func (temporaryError) Temporary() bool { return true }

func (l *tired) Accept() (net.Conn, error) {
	if l.temporary--; l.temporary >= 0 {
		return nil, temporaryError{errors.New("out of descriptors")}
	}
	return nil, net.ErrClosed
}

// TestServeGoesOnAfterTemporaryErrors: Serve ends with the first error that is not temporary.
func TestServeGoesOnAfterTemporaryErrors(t *testing.T) {
	l := &tired{temporary: 2}
	if err := newServer(t).Serve(l); err != net.ErrClosed || l.temporary != -1 {
		t.Errorf("Serve ends with %v, after %d errors", err, 2-l.temporary)
	}
}

// TestSaved: a snapshot that failed is counted, and is not the last one.
func TestSaved(t *testing.T) {
	s := newServer(t)
	for _, tt := range []struct {
		err             error
		written, failed uint64
		has             bool
	}{{errors.New("full disk"), 0, 1, false}, {nil, 1, 1, true}, {errors.New("full disk"), 1, 2, true}} {
		s.Saved(tt.err)
		if written, failed, last := s.saved(); written != tt.written || failed != tt.failed || (last > 0) != tt.has {
			t.Errorf("after %v %d were written and %d failed, the last at %d", tt.err, written, failed, last)
		}
	}
}
