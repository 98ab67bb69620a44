package arena_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
)

// benchResetEach is how many blocks of 64 B a goroutine allocates between Resets.
const benchResetEach = 1 << 16

// benchEach runs a loop on GOMAXPROCS goroutines. The figure is the time of one
// goroutine, so it is constant if the loop scales perfectly.
func benchEach(b *testing.B, loop func(s *arena.Shared, n int)) {
	h := freehold.NewHeap(nil)
	defer h.Close()
	s := arena.NewShared(h, nil)
	defer s.Close()
	var wg sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() { loop(s, b.N) })
	}
	wg.Wait()
	b.StopTimer()
}

func BenchmarkSharedAlloc64(b *testing.B) { benchEach(b, alloc64) }

// The same without assembly.
func BenchmarkSharedAlloc64InGo(b *testing.B) {
	for name, pins := range map[string]bool{"leaf": false, "pin": true} {
		b.Run("path="+name, func(b *testing.B) {
			defer arena.PlainShared(pins)()
			benchEach(b, alloc64)
		})
	}
}

func alloc64(s *arena.Shared, n int) {
	for i := range n {
		if _, err := s.Alloc(64, 8); err != nil {
			panic(err)
		}
		if i%benchResetEach == 0 {
			s.Reset()
		}
	}
}

func BenchmarkSharedGuard(b *testing.B) {
	benchEach(b, func(s *arena.Shared, n int) {
		for range n {
			s.Enter().Leave()
		}
	})
}
