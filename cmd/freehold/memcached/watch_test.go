package memcached

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freehold-go/freehold/cache"
)

// watchClient returns a reader of the lines of a watcher.
func watchClient(t *testing.T, p *pipes, command string) (net.Conn, *bufio.Reader) {
	t.Helper()
	c := p.dial()
	lines := bufio.NewReader(c)
	fmt.Fprintf(c, "%s\r\n", command)
	if got, err := lines.ReadString('\n'); got != "OK\r\n" {
		t.Errorf("%s: %q, %v", command, got, err)
	}
	return c, lines
}

var stamp = regexp.MustCompile(`^ts=\d+\.\d{6} gid=\d+ `)

// next returns a line without its time and number.
func next(t *testing.T, lines *bufio.Reader) string {
	t.Helper()
	line, err := lines.ReadString('\n')
	if !stamp.MatchString(line) {
		t.Errorf("%q, %v", line, err)
	}
	return stamp.ReplaceAllString(line, "")
}

func TestWatch(t *testing.T) {
	serving(t, nil, func(t *testing.T, s *Server, p *pipes) {
		time.Sleep(time.Second / 2) // away from the edge of the cache's second
		c, lines := watchClient(t, p, "watch fetchers mutations evictions")
		for _, tt := range []struct {
			say  string
			want []string
		}{
			{"get a\r\n", []string{"type=item_get key=a status=not_found clsid=1 cfd=N size=0"}},
			{"set a 0 9 4\r\nwert\r\n", []string{"type=item_get key=a status=not_found clsid=1 cfd=N size=0",
				"type=item_store key=a status=stored cmd=set ttl=9 clsid=1 cfd=N size=4"}},
			{"get a b\r\nmg a\r\n", []string{"type=item_get key=a status=found clsid=1 cfd=N size=4", "type=item_get key=b status=not_found clsid=1 cfd=N size=0",
				"type=item_get key=a status=found clsid=1 cfd=N size=4"}},
			{"ms #,~ 1 ME\r\n1\r\nms #,~ 1 ME\r\n1\r\n", []string{"type=item_get key=%23%2C~ status=not_found clsid=1 cfd=N size=0",
				"type=item_store key=%23%2C~ status=stored cmd=add ttl=0 clsid=1 cfd=N size=1", "type=item_get key=%23%2C~ status=found clsid=1 cfd=N size=1",
				"type=item_store key=%23%2C~ status=not_stored cmd=add ttl=0 clsid=1 cfd=N size=1"}},
			{"cas a 0 0 1 5\r\n1\r\n", []string{"type=item_get key=a status=found clsid=1 cfd=N size=4", "type=item_store key=a status=exists cmd=cas ttl=0 clsid=1 cfd=N size=1"}},
			{"gat 0 a\r\ntouch a 0\r\nincr a 1\r\nmg a u\r\nmd a\r\nset a 0 0 1\r\n1\r\ndelete a\r\n", []string{"type=item_get key=a status=found clsid=1 cfd=N size=4",
				"type=item_get key=a status=found clsid=1 cfd=N size=4", "type=item_get key=a status=found clsid=1 cfd=N size=4",
				"type=item_get key=a status=found clsid=1 cfd=N size=4", "type=item_get key=a status=found clsid=1 cfd=N size=4",
				"type=item_get key=a status=not_found clsid=1 cfd=N size=0", "type=item_store key=a status=stored cmd=set ttl=0 clsid=1 cfd=N size=1",
				"type=item_get key=a status=found clsid=1 cfd=N size=1"}},
			{"set a 0 9 1\r\n1\r\nappend a 0 0 2\r\n23\r\n", []string{"type=item_get key=a status=not_found clsid=1 cfd=N size=0",
				"type=item_store key=a status=stored cmd=set ttl=9 clsid=1 cfd=N size=1", "type=item_get key=a status=found clsid=1 cfd=N size=1",
				"type=item_store key=a status=stored cmd=append ttl=9 clsid=1 cfd=N size=3"}},
			{"add a 0 0 100000\r\n" + strings.Repeat("x", 100000) + "\r\n", []string{"type=item_store key=a status=too_large cmd=add ttl=0 clsid=1 cfd=N size=100000"}},
		} {
			talk(t, s, tt.say)
			number := fmt.Sprint("cfd=", s.opened)
			for _, want := range tt.want {
				if got := next(t, lines); got != strings.Replace(want, "cfd=N", number, 1)+"\n" {
					t.Errorf("after %.40q the watcher was told %q, want %q", tt.say, got, want)
				}
			}
		}
		d, deleted := watchClient(t, p, "watch deletions")
		talk(t, s, "delete a\r\ndelete a\r\nmd a\r\nms a 3 E5\r\nabc\r\nmd a I\r\nmd a x\r\nmd a\r\nms a 2 E5\r\nab\r\ndelete a\r\n")
		for _, want := range []string{"delete clsid=1 cfd=N size=3", "md clsid=1 cfd=N size=3", "md clsid=1 cfd=N size=0", "delete clsid=1 cfd=N size=2"} {
			if got := next(t, deleted); got != "type=deleted key=a cmd="+strings.Replace(want, "cfd=N", fmt.Sprint("cfd=", s.opened), 1)+"\n" {
				t.Errorf("the watcher of deletions was told %q, want %q", got, want)
			}
		}
		d.Close()
		for range 11 { // of the commands above
			next(t, lines)
		}
		s.Evicted([]byte("k"), cache.Entry{Value: []byte("v"), Read: true, Idle: 5 * time.Second, TTL: 10 * time.Second}, cache.Room)
		s.Evicted([]byte("k"), cache.Entry{}, cache.Expired)
		s.Evicted([]byte("l"), cache.Entry{}, cache.Shrunk)
		for _, want := range []string{"type=eviction key=k fetch=yes ttl=10 la=5 clsid=1 size=1\n", "type=eviction key=l fetch=no ttl=-1 la=0 clsid=1 size=0\n"} {
			if got := next(t, lines); got != want {
				t.Errorf("the watcher was told %q, want %q", got, want)
			}
		}
		c.Close()
		synctest.Wait()
		if s.watchers.wants(fetchers | mutations | evictions) {
			t.Error("a watcher that has left is told more")
		}
	})
}

// A watcher of connections learns who comes, and why they leave.
func TestWatchConnections(t *testing.T) {
	serving(t, func(o *Options) { o.MaxConns, o.Idle = 10, time.Minute }, func(t *testing.T, s *Server, p *pipes) {
		c, lines := watchClient(t, p, "watch connevents")
		defer c.Close()
		for _, tt := range []struct{ say, reason string }{{"quit\r\n", "normal"}, {"", "normal"}, {"GET / HTTP/1.1\r\n", "error"}, {"\x80", "error"}, {"get a", "idle_timeout"}} {
			other := p.dial()
			if got := next(t, lines); !strings.HasPrefix(got, "type=conn_new rip=unix rport=0 transport=local cfd=") {
				t.Errorf("a client comes: %q", got)
			}
			io.WriteString(other, tt.say)
			if tt.reason != "idle_timeout" {
				go io.Copy(io.Discard, other)
				time.Sleep(time.Second)
				other.Close()
			}
			if got := next(t, lines); !strings.HasPrefix(got, "type=conn_close rip=unix rport=0 transport=local reason="+tt.reason+" cfd=") {
				t.Errorf("%q, and it leaves: %q, want %s", tt.say, got, tt.reason)
			}
		}
		time.Sleep(time.Hour) // a watcher is never idle for too long
		talk(t, s, "mn\r\n")
		other := p.dial()
		next(t, lines)
		s.mu.Lock()
		for se := range s.sessions {
			if se.id == s.opened {
				se.conn.(*deadlined).close(func(c net.Conn) { c.SetReadDeadline(time.Unix(1, 0)) })
			}
		}
		s.mu.Unlock()
		if got := next(t, lines); !strings.Contains(got, "reason=shutdown") {
			t.Errorf("the server stops: %q", got)
		}
		other.Close()
	})
}

// A watcher that reads too slowly loses lines and gets their number. No session waits for it.
func TestSlowWatchers(t *testing.T) {
	serving(t, func(o *Options) { o.Write = time.Hour }, func(t *testing.T, s *Server, p *pipes) {
		c, lines := watchClient(t, p, "watch")
		defer c.Close()
		const gets = 20_000
		for range gets / 100 {
			talk(t, s, strings.Repeat("get a\r\n", 100))
		}
		told, skipped := 0, 0
		for told+skipped < gets {
			line, err := lines.ReadString('\n')
			var n int
			switch _, no := fmt.Sscanf(line, "skipped=%d\n", &n); {
			case no == nil:
				skipped += n
			case err != nil || !stamp.MatchString(line):
				t.Fatalf("%q, %v", line, err)
			default:
				told++
			}
			if told%100 == 0 {
				talk(t, s, "get b\r\n") // a line about skipped ones comes before another
			}
		}
		if _, sent, lost := s.watchers.figures(); skipped == 0 || uint64(skipped) > lost || uint64(told) > sent {
			t.Errorf("%d told, %d skipped; figures: %d and %d", told, skipped, sent, lost)
		}
	})
}

// A watcher that takes no line for too long is disconnected as too slow.
func TestWatcherThatTakesNothing(t *testing.T) {
	serving(t, func(o *Options) { o.MaxConns = 10 }, func(t *testing.T, s *Server, p *pipes) {
		c, lines := watchClient(t, p, "watch connevents")
		defer c.Close()
		slow, _ := watchClient(t, p, "watch fetchers")
		defer slow.Close()
		talk(t, s, "get a\r\n")
		next(t, lines) // slow has come
		if got := next(t, lines); !strings.Contains(got, "type=conn_close") || !strings.Contains(got, "reason=too_slow") {
			t.Errorf("a watcher of fetchers leaves: %q", got)
		}
		if total, _, _, _ := s.totals(); total[slowKicks] != 1 {
			t.Errorf("%d slow kicks", total[slowKicks])
		}
	})
}

// Watchers have limits.
func TestTooManyWatchers(t *testing.T) {
	serving(t, func(o *Options) { o.MaxConns = 100 }, func(t *testing.T, s *Server, p *pipes) {
		for range maxWatchers {
			c, _ := watchClient(t, p, "watch evictions")
			defer c.Close()
		}
		for say, want := range map[string]string{
			"watch\r\n":           "WATCHER_TOO_MANY log watcher limit reached\r\n",
			"watch all\r\nmn\r\n": "ERROR\r\nMN\r\n",
			"mn\r\nwatch\r\n":     "MN\r\nERROR cannot pipeline other commands before watch\r\n",
		} {
			if got := talk(t, s, say); got != want {
				t.Errorf("%q: %q, want %q", say, got, want)
			}
		}
		s.options.NoWatch = true
		if got := talk(t, s, "watch\r\n"); got != "CLIENT_ERROR watch commands not allowed\r\n" {
			t.Errorf("with NoWatch: %q", got)
		}
	})
}

// A client that has left before the reply to watch is no watcher.
func TestWatcherThatIsGone(t *testing.T) {
	s := newServer(t)
	s.Session(&wire{pieces: []string{"watch\r\n"}, err: io.ErrClosedPipe})
	if n, _, _ := s.watchers.figures(); n != 0 || s.watchers.wants(fetchers) {
		t.Errorf("%d watchers", n)
	}
}

// Lines that a watcher has not taken have a bound.
func TestWatcherBytes(t *testing.T) {
	w := &watcher{ready: make(chan struct{}, 1)}
	for w.add(make([]byte, 1000)) {
	}
	if n := len(w.lines); n > watcherBytes || n < watcherBytes-2000 || w.skipped != 1 {
		t.Errorf("%d bytes of %d, %d skipped", n, watcherBytes, w.skipped)
	}
}
