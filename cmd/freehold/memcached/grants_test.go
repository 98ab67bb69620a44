package memcached

import (
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freehold-go/freehold"
)

// uploads makes n clients send all but the last byte of a value, and returns them.
func uploads(p *pipes, n int) (all []net.Conn) {
	for i := range n {
		c := p.dial()
		go fmt.Fprintf(c, "set slow%d 0 0 60000\r\n%s", i, strings.Repeat("x", 60001))
		synctest.Wait()
		all = append(all, c)
	}
	return all
}

// statOf returns a figure of stats.
func statOf(t *testing.T, s *Server, name string) (value int) {
	t.Helper()
	_, after, _ := strings.Cut(talk(t, s, "stats\r\n"), "STAT "+name+" ")
	if n, err := fmt.Sscan(after, &value); n != 1 {
		t.Fatalf("no %s: %v", name, err)
	}
	return value
}

const large = "set a 0 0 60000\r\n" // and 60,000 bytes

func largeValue() string { return strings.Repeat("v", 60000) + "\r\n" }

// Clients that never end their uploads delay an upload of another client by a moment, and small
// commands not at all.
func TestSlowUploads(t *testing.T) {
	const atOnce = 18
	serving(t, func(o *Options) { o.MaxConns, o.Write, o.Buffers = 1000, 30*time.Second, atOnce*60100 }, func(t *testing.T, s *Server, p *pipes) {
		slow := uploads(p, 161)
		most := s.options.Buffers
		if used := statOf(t, s, "buffer_bytes"); used > most || used < most/2 {
			t.Errorf("%d bytes are granted, of %d", used, most)
		}
		c := p.dial()
		start := time.Now()
		if got := ask(t, c, "set a 0 0 1\r\n1\r\n"); got != "STORED\r\n" || time.Since(start) > 0 {
			t.Errorf("a small set: %q after %v", got, time.Since(start))
		}
		if got := ask(t, c, large+largeValue()); got != "STORED\r\n" {
			t.Errorf("a large set: %q after %v", got, time.Since(start))
		}
		if took := time.Since(start); took > (161/atOnce+1)*(grantGrace+time.Second/50) {
			t.Errorf("a large set behind 161 slow ones took %v", took)
		}
		if kicks := statOf(t, s, "slow_kicks"); kicks < 161-atOnce {
			t.Errorf("%d of 161 slow clients were disconnected", kicks)
		}
		for _, c := range slow[:161-atOnce] {
			if !ended(c) {
				t.Fatal("a slow client is connected")
			}
		}
		slow = append(slow, uploads(p, 161)...)
		start = time.Now()
		if got := ask(t, c, "mn\r\n"+large); got != "MN\r\n" || time.Since(start) > 0 {
			t.Errorf("the reply to a command before a large set: %q after %v", got, time.Since(start))
		}
		if got := ask(t, c, largeValue()); got != "STORED\r\n" || time.Since(start) > 3*grantGrace {
			t.Errorf("a large set of a client that has proved itself: %q after %v", got, time.Since(start))
		}
		for _, c := range append(slow, c) {
			c.Close()
		}
	})
}

// Clients that do not take their replies delay another one's by a moment.
func TestSlowReplies(t *testing.T) {
	serving(t, func(o *Options) { o.MaxConns, o.Write = 1000, 30*time.Second }, func(t *testing.T, s *Server, p *pipes) {
		talk(t, s, large+largeValue()+strings.Replace(large, "a", "fresh", 1)+largeValue())
		var all []net.Conn
		for i := range 100 {
			c := p.dial()
			go io.WriteString(c, []string{"get a\r\n", "mg a v\r\n", "gat 0 a\r\n", "mg a v T0\r\n", "get b a a\r\n"}[i%5])
			all = append(all, c)
		}
		synctest.Wait()
		c := p.dial()
		go io.WriteString(c, "mg fresh v h\r\nmg fresh v h\r\nquit\r\n")
		got, err := io.ReadAll(c)
		if want := "VA 60000 h0\r\n" + largeValue() + "VA 60000 h1\r\n" + largeValue(); string(got) != want || err != nil {
			t.Errorf("%.40q and %d bytes, %v", got, len(got), err)
		}
		if kicks := statOf(t, s, "slow_kicks"); kicks < 90 {
			t.Errorf("%d of 100 slow clients were disconnected", kicks)
		}
		for _, c := range all {
			c.Close()
		}
	})
}

// While no other client waits, a client may be slow.
func TestSlowAlone(t *testing.T) {
	serving(t, func(o *Options) { o.Write = 30 * time.Second }, func(t *testing.T, s *Server, p *pipes) {
		c := uploads(p, 1)[0]
		time.Sleep(24 * time.Hour)
		if got := ask(t, c, "x\r\n"); got != "CLIENT_ERROR bad data chunk\r\n" && got != "STORED\r\n" {
			t.Errorf("after a day: %q", got)
		}
		c.Close()
	})
}

// A client that has waited for too long is refused, and goes on.
func TestRefusedForMemory(t *testing.T) {
	serving(t, func(o *Options) { o.MaxConns, o.Write = 10, time.Second/8 }, func(t *testing.T, s *Server, p *pipes) {
		talk(t, s, strings.Replace(large, " a ", " big ", 1)+largeValue()+"set a 0 0 1\r\n1\r\n")
		slow := uploads(p, 2) // overdue after a second
		c := p.dial()
		if got := ask(t, c, "append big 0 0 1\r\n1\r\n"); got != outOfMemory+"\r\n" {
			t.Errorf("an append to a large value: %q", got)
		}
		if got := ask(t, c, large+largeValue()+"mn\r\n"); got != outOfMemory+"\r\n" {
			t.Errorf("a large set: %q", got)
		}
		if got, _ := io.ReadAll(io.LimitReader(c, 4)); string(got) != "MN\r\n" {
			t.Errorf("after it: %q", got)
		}
		go io.WriteString(c, "mn\r\n"+strings.Replace(large, "\r", " noreply\r", 1)+largeValue()+"mn\r\n")
		if got, _ := io.ReadAll(io.LimitReader(c, 8)); string(got) != "MN\r\nMN\r\n" {
			t.Errorf("a set with noreply that waits in vain: %q", got)
		}
		if got := talk(t, s, "get a\r\n"); got != "END\r\n" {
			t.Errorf("the old value of a set that was refused: %q", got)
		}
		if n, kicks, refused := statOf(t, s, "store_no_memory"), statOf(t, s, "slow_kicks"), statOf(t, s, "buffer_refused"); n != 2 || kicks > 0 || refused != 3 {
			t.Errorf("%d refused sets, %d disconnected, %d refused", n, kicks, refused)
		}
		for _, c := range append(slow, c) {
			c.Close()
		}
	})
}

// A refusing heap has no memory for large buffers, if full is set.
type refusing struct {
	freehold.Allocator
	full bool
}

func (r *refusing) Alloc(size, align int) ([]byte, error) {
	if r.full && size > ownBytes {
		return nil, freehold.ErrOutOfMemory
	}
	return r.Allocator.Alloc(size, align)
}

// A server whose heap has no memory says so, and has lost none of its grants when the heap has some
// again.
func TestHeapWithoutMemory(t *testing.T) {
	s := newServer(t)
	heap := &refusing{Allocator: s.options.Heap}
	s.options.Heap = heap
	talk(t, s, large+largeValue())
	const noReply = "SERVER_ERROR out of memory writing get response\r\n"
	for say, want := range map[string]string{
		large + largeValue() + "mn\r\n":   outOfMemory + "\r\nMN\r\n",
		"append big 0 0 1\r\n1\r\nmn\r\n": outOfMemory + "\r\nMN\r\n",
		"mn\r\nget big\r\nmn\r\n":         "MN\r\n" + noReply,
		"mg big v T0\r\n":                 noReply,
		"get b big b\r\n":                 noReply,
		"gat 0 big b\r\n":                 noReply,
		"get " + strings.Repeat("b ", bufferBytes) + "\r\nmn\r\n":             outOfMemory + "\r\n",
		"get b\r\nset a 0 0 1\r\n1\r\nmg a v\r\n" + large + largeValue()[:10]: "END\r\nSTORED\r\nVA 1\r\n1\r\n" + outOfMemory + "\r\n",
	} {
		talk(t, s, strings.Replace(large, " a ", " big ", 1)+largeValue())
		heap.full = true
		if got := talk(t, s, say); got != want {
			t.Errorf("%.40q: %q, want %q", say, got, want)
		}
		if got := talk(t, s, say+"stats\r\n"); strings.Contains(got, "STAT buffer_bytes ") && !strings.Contains(got, "STAT buffer_bytes 0\r\n") {
			t.Errorf("%.40q: the session has a grant behind it", say)
		}
		if used := statOf(t, s, "buffer_bytes"); used != 0 {
			t.Errorf("%.40q: %d bytes are granted", say, used)
		}
		heap.full = false
	}
	if got := talk(t, s, "get big\r\n"); len(got) < 60000 {
		t.Errorf("with memory: %.60q", got)
	}
}

// A key that leaves no room for a version is not added by mg.
func TestKeyWithoutRoomForItsVersion(t *testing.T) {
	s := newServer(t)
	s.options.MaxItem = 4
	if got := talk(t, s, "mg abcdef N30 E5\r\nmg abcdef\r\n"); got != "EN\r\nEN\r\n" {
		t.Errorf("%q", got)
	}
}

// One client lists keys at a time: a list keeps memory of the cache while its client does not read.
func TestOneList(t *testing.T) {
	serving(t, func(o *Options) { o.Write = time.Hour }, func(t *testing.T, s *Server, p *pipes) {
		for i := range 1000 {
			talk(t, s, fmt.Sprintf("set key%d 0 0 1\r\n1\r\n", i))
		}
		slow := p.dial()
		io.WriteString(slow, "lru_crawler metadump all\r\n")
		synctest.Wait()
		if got := talk(t, s, "lru_crawler metadump all\r\nstats cachedump 1 0\r\nstats sizes\r\nmn\r\n"); got != strings.Repeat(busy+"\r\n", 3)+"MN\r\n" {
			t.Errorf("while another client lists keys: %q", got)
		}
		slow.Close()
		synctest.Wait()
		for _, list := range []string{"lru_crawler metadump all\r\n", "stats cachedump 1 0\r\n", "stats cachedump 1 0\r\n", "lru_crawler metadump all\r\n"} {
			if got := talk(t, s, list); strings.Count(strings.TrimPrefix(got, "OK\r\n"), "\n") != 1001 || !strings.HasSuffix(got, "END\r\n") {
				t.Errorf("%q: %d lines", list, strings.Count(got, "\n"))
			}
		}
	})
}

// A server that stops does not wait for clients that wait for memory.
func TestShutdownOfWaiters(t *testing.T) {
	serving(t, func(o *Options) { o.MaxConns, o.Write = 10, time.Hour }, func(t *testing.T, s *Server, p *pipes) {
		for _, c := range uploads(p, 5) {
			go io.Copy(io.Discard, c)
		}
	})
}

// Grants are given in order, within the limit, and in time. n says when a wait has ended, in
// seconds.
func TestGrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gs := &grants{limit: 100}
		began := time.Now()
		var mu sync.Mutex // guards all
		var all []string
		ask := func(name string, bytes int, patience time.Duration) *grant {
			g := &grant{bytes: bytes}
			go func() {
				ok := gs.acquire(g, false, patience)
				mu.Lock()
				defer mu.Unlock()
				all = append(all, fmt.Sprint(name, ok, time.Since(began)))
			}()
			synctest.Wait()
			return g
		}
		first := ask("first ", 60, 0)
		ask("large ", 101, time.Hour)
		ask("waits ", 50, time.Second)
		ask("impatient ", 10, 0) // has room, and others wait
		ask("next ", 30, 10*time.Second)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		ask("last ", 70, time.Hour) // fills the limit
		gs.release(first)
		synctest.Wait()
		ask("late ", 90, time.Hour)
		ask("limit ", 100, time.Hour)
		gs.close()
		ask("closed ", 10, time.Hour)
		slices.Sort(all)
		const want = "[closed false 2s first true 0s impatient false 0s large false 0s last true 2s late false 2s limit false 2s next true 1s waits false 1s]"
		if got := fmt.Sprint(all); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if used, waited, refused := gs.figures(); used != 100 || waited != 5 || refused != 3 {
			t.Errorf("%d bytes, %d waited, %d refused", used, waited, refused)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		gs := &grants{limit: 8 << 20}
		began, cut := time.Now(), time.Duration(0)
		slow := &grant{bytes: 8 << 20}
		slow.cut = func() {
			cut = time.Since(began)
			go gs.release(slow)
		}
		gs.acquire(slow, false, 0)
		if !gs.acquire(&grant{bytes: 1}, false, time.Hour) || cut != grantGrace+8<<20*time.Second/grantRate {
			t.Errorf("a grant of 8 MiB is overdue after %v", cut)
		}
	})
}
