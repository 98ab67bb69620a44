package memcached

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cache"
)

// A day of load in the time of a bubble: clients come and go, in bursts, with items that expire
// after seconds to hours and of all sizes. At each minute the cache is within its bound, and Go's
// heap does not grow.
func TestDay(t *testing.T) {
	commands := 4000 // of a client in a minute
	if testing.Short() {
		commands = 40
	}
	serving(t, func(o *Options) { o.MaxConns = 8 }, func(t *testing.T, s *Server, p *pipes) {
		s.cache = cache.New(freehold.Pages(), &cache.Options{MaxBytes: testBytes, Access: true}) // alloctest keeps records on Go's heap
		defer s.cache.Close()
		s.options.Heap = freehold.Pages()
		const clients, minutes = 4, 24 * 60
		most, atFirst := 0, uint64(0)
		random := rand.New(rand.NewPCG(1, 1))
		for minute := range minutes {
			done := make(chan error)
			for range clients {
				conn := p.dial()
				go func(r *rand.Rand) { done <- burst(conn, r, commands) }(rand.New(rand.NewPCG(random.Uint64(), 1)))
			}
			for range clients {
				if err := <-done; err != nil {
					t.Fatalf("minute %d: %v", minute, err)
				}
			}
			st := s.cache.Stats()
			if most = max(most, st.Reserved); most > testBytes {
				t.Fatalf("minute %d: %d bytes of %d, %+v", minute, most, testBytes, st)
			}
			if minute%60 == 0 {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				if minute == 60 {
					atFirst = m.HeapAlloc
				}
				if minute > 60 && m.HeapAlloc > atFirst+8<<20 {
					t.Fatalf("minute %d: %d bytes of Go's heap, after %d at first", minute, m.HeapAlloc, atFirst)
				}
			}
			time.Sleep(time.Minute)
		}
		if _, conns, _, rejected := s.totals(); conns > 0 || rejected > 0 {
			t.Errorf("%d connections in the end, %d rejected", conns, rejected)
		}
		st := s.cache.Stats()
		if st.Evicted == 0 || st.Expired == 0 || st.Hits == 0 || most < testBytes*8/10 {
			t.Errorf("too little happened: at most %d bytes, %+v", most, st)
		}
		t.Logf("at most %d bytes of %d, %+v", most, testBytes, st)
	})
}

// burst sends commands in batches, and leaves when all are answered.
func burst(conn net.Conn, r *rand.Rand, commands int) error {
	defer conn.Close()
	for commands > 0 {
		var b strings.Builder
		for range min(1+r.IntN(40), commands) {
			commands--
			key := r.IntN(1 << r.IntN(17))
			switch r.IntN(8) {
			default:
				fmt.Fprintf(&b, "mg key%d q\r\n", key)
			case 5:
				fmt.Fprintf(&b, "md key%d q\r\n", key)
			case 6, 7:
				size := r.IntN(1 << (4 + r.IntN(12)))
				fmt.Fprintf(&b, "ms key%d %d q T%d\r\n%s\r\n", key, size, r.IntN(1<<r.IntN(14)), strings.Repeat("x", size))
			}
		}
		go io.WriteString(conn, b.String()+"mn\r\n") // a pipe keeps nothing: the server may want to reply first
		var got []byte
		for buf := make([]byte, 4096); !strings.HasSuffix(string(got), "MN\r\n"); {
			n, err := conn.Read(buf)
			if got = append(got, buf[:n]...); err != nil {
				return fmt.Errorf("after %q: %w", got[max(len(got)-100, 0):], err)
			}
		}
		if strings.Contains(string(got), "ERROR") {
			return fmt.Errorf("%q", got)
		}
	}
	return nil
}
