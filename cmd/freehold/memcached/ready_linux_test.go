package memcached

import (
	"bufio"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
)

// A socket is a TCP or Unix connection.
type socket interface {
	net.Conn
	CloseWrite() error
}

// onSockets runs f with a function that serves s over TCP, and then over Unix sockets. The function
// returns a connection of a client with a deadline.
func onSockets(t *testing.T, f func(t *testing.T, s *Server, dial func() (socket, *bufio.Reader))) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			s := newServer(t)
			f(t, s, func() (socket, *bufio.Reader) { return over(t, s, network) })
		})
	}
}

// over serves s, and returns a connection of a client with a deadline.
func over(t *testing.T, s *Server, network string) (socket, *bufio.Reader) {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "socket")
	}
	l := freehold.Must(net.Listen(network, address))
	t.Cleanup(func() {
		l.Close()
		s.Shutdown(t.Context()) // which is done
	})
	go s.Serve(l)
	conn := freehold.Must(net.Dial(network, l.Addr().String()))
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(time.Minute))
	return conn.(socket), bufio.NewReader(conn)
}

func say(t *testing.T, conn net.Conn, replies *bufio.Reader, command, want string) {
	t.Helper()
	io.WriteString(conn, command)
	if got, err := replies.ReadString('\n'); got != want {
		t.Fatalf("%q: %q, %v, want %q", command, got, err, want)
	}
}

// A session that has replied waits without a read in vain. The end of a connection that comes
// together with input is found all the same. The server is held up, so that both come together.
func TestEndTogetherWithInput(t *testing.T) {
	onSockets(t, func(t *testing.T, s *Server, dial func() (socket, *bufio.Reader)) {
		entered, leave := make(chan bool), make(chan bool)
		s.options.Admits = func(user, _ []byte) bool {
			if string(user) == "wait" {
				entered <- true
				<-leave
			}
			return string(user) == "me"
		}
		conn, replies := dial()
		for range tryingTurns + 3 {
			say(t, conn, replies, "set x 0 0 4\r\nme x\r\n", "STORED\r\n")
		}
		for deadline := time.Now().Add(time.Minute); s.clients()[0].conn.(*deadlined).ready.turns.Load()%2 != 0; runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatal("the session reads before it waits")
			}
		}
		say(t, conn, replies, "mn\r\n", "MN\r\n")

		conn, replies = dial()
		say(t, conn, replies, "set x 0 0 4\r\nno x\r\n", "CLIENT_ERROR authentication failure\r\n")
		say(t, conn, replies, "set x 0 0 4\r\nno x\r\n", "CLIENT_ERROR authentication failure\r\n")
		say(t, conn, replies, "set x 0 0 4\r\nno x\r\n", "CLIENT_ERROR authentication failure\r\n")
		io.WriteString(conn, "set x 0 0 6\r\nwait x\r\n")
		<-entered
		io.WriteString(conn, "get a\r\n")
		conn.CloseWrite()
		leave <- true
		rest, err := io.ReadAll(replies)
		if want := "CLIENT_ERROR authentication failure\r\nCLIENT_ERROR unauthenticated\r\n"; string(rest) != want || err != nil {
			t.Errorf("%q, %v, want %q and the end", rest, err, want)
		}
	})
}

// live counts the bytes that an allocator has given.
type live struct {
	freehold.Allocator
	bytes atomic.Int64
}

func (l *live) Alloc(size, align int) ([]byte, error) {
	b, err := l.Allocator.Alloc(size, align)
	l.bytes.Add(int64(len(b)))
	return b, err
}

func (l *live) Free(b []byte) {
	l.bytes.Add(-int64(len(b)))
	l.Allocator.Free(b)
}

// Sessions that wait hold no buffers: all that there are are spares.
func TestIdleSessionsHoldNoBuffers(t *testing.T) {
	onSockets(t, func(t *testing.T, s *Server, dial func() (socket, *bufio.Reader)) {
		heap := &live{Allocator: s.options.Heap}
		s.options.Heap, s.options.MaxConns = heap, 100
		for range 20 {
			conn, replies := dial()
			for range tryingTurns + 2 {
				say(t, conn, replies, "mn\r\n", "MN\r\n")
			}
		}
		held := func() int64 {
			s.spares.mu.Lock()
			defer s.spares.mu.Unlock()
			return heap.bytes.Load() - int64(len(s.spares.all)*ownBytes)
		}
		for deadline := time.Now().Add(time.Minute); held() > 0; runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatalf("waiting sessions hold %d bytes", held())
			}
		}
		conn, replies := dial() // the middle of a command stays
		say(t, conn, replies, "mn\r\nset a 0 0 3\r\nx", "MN\r\n")
		say(t, conn, replies, "yz\r\n", "STORED\r\n")
	})
}

// A session serves on after sweeps and kicks, until it is cut.
func TestSweeps(t *testing.T) {
	onSockets(t, func(t *testing.T, s *Server, dial func() (socket, *bufio.Reader)) {
		s.options.MaxConns = 10
		conn, replies := dial()
		for range 5 {
			say(t, conn, replies, "mn\r\n", "MN\r\n")
		}
		d := s.clients()[0].conn.(*deadlined)
		s.sweep()
		s.sweep() // looks for the end
		say(t, conn, replies, "mn\r\n", "MN\r\n")
		d.kick()
		say(t, conn, replies, "mn\r\n", "MN\r\n")
		d.kick()
		d.cut()
		if rest, err := io.ReadAll(replies); len(rest) > 0 || err != nil {
			t.Errorf("after a cut: %q, %v", rest, err)
		}
	})
}

// A client that sends faster than the server works ends by Shutdown too. Each turn finds a full
// buffer, since the server's own command sends the next one.
func TestShutdownOfFloods(t *testing.T) {
	onSockets(t, func(t *testing.T, s *Server, dial func() (socket, *bufio.Reader)) {
		flood := []byte(strings.Repeat("mg a q"+strings.Repeat(" ", 1016)+"\r\n", bufferBytes>>10))
		copy(flood, "refresh_certs\nmn\nmg ") // 16 KiB: the session's buffer
		dialed := make(chan socket, 1)
		client := sync.OnceValue(func() socket { return <-dialed })
		var after atomic.Int64
		began := make(chan bool, 1)
		s.options.Reload = func() error {
			select {
			case began <- true:
			default:
			}
			s.mu.Lock()
			closed := s.closed
			s.mu.Unlock()
			if closed && after.Add(1) > 3 {
				return nil
			}
			_, err := client().Write(flood)
			return err
		}
		conn, replies := dial()
		dialed <- conn
		go io.Copy(io.Discard, replies)
		conn.Write(flood)
		<-began
		s.Shutdown(t.Context())
		if n := after.Load(); n > 2 {
			t.Errorf("a session has run %d turns after Shutdown", n)
		}
	})
}

// A kick during a turn leaves no mark: the next deadline is not taken for the kick's.
func TestKickDuringATurn(t *testing.T) {
	server, client := net.Pipe()
	defer server.Close()
	d := &deadlined{Conn: server, idle: time.Hour}
	d.kick()
	go func() {
		client.Write([]byte("x"))
		client.Close()
	}()
	if _, err := d.Read(make([]byte, 1)); err != nil || d.endKick() {
		t.Errorf("%v, or the kick lasts", err)
	}
}
