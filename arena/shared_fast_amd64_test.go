//go:build !race && !freehold_portable

package arena

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/pin"
)

// The assembly serves processors beyond the first slots of a table that has more.
func TestSlotsBeyondTheFirst(t *testing.T) {
	if !pin.Known() {
		t.Skip("no assembly")
	}
	const procs = 4 * pin.FirstSlots
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
	s := NewShared(freehold.Default(), nil)
	defer s.Close()

	var slow [2]atomic.Int64 // calls of each in Go
	was := plain
	defer func() { plain = was }()
	plain = functions{
		alloc:  func(s *Shared, size, align int) ([]byte, error) { slow[0].Add(1); return was.alloc(s, size, align) },
		zeroed: func(s *Shared, size, align int) ([]byte, error) { slow[1].Add(1); return was.zeroed(s, size, align) },
	}
	for i, call := range []func(*Shared, int, int) ([]byte, error){(*Shared).Zeroed, (*Shared).Alloc} {
		const rounds = 5_000
		var n atomic.Int64 // rounds beyond the first slots
		var wg sync.WaitGroup
		for range procs { // busy, so that all processors come to run
			wg.Go(func() {
				for n.Load() < rounds {
					slot := s.table.Enter()
					s.table.Leave(slot)
					if slot < pin.FirstSlots {
						runtime.Gosched()
						continue
					}
					n.Add(1)
					freehold.Must(call(s, 8, 8))
				}
			})
		}
		wg.Wait()
		if n := slow[1-i].Load(); n > rounds/2 {
			t.Errorf("%d calls in Go in %d rounds", n, rounds)
		}
		s.Reset()
	}
}
