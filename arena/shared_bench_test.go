package arena_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/internal/pin"
)

// benchResetEach is how many blocks of 64 B a goroutine allocates between Resets.
const benchResetEach = 1 << 16

// benchEach runs a loop on GOMAXPROCS goroutines. The figure is the time of one
// goroutine, so it is constant if the loop scales perfectly.
func benchEach(b *testing.B, o *arena.SharedOptions, loop func(s *arena.Shared, n int)) {
	h := freehold.NewHeap(nil)
	defer h.Close()
	s := arena.NewShared(h, o)
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

func BenchmarkSharedAlloc64(b *testing.B) { benchEach(b, nil, alloc64) }

// The same without assembly.
func BenchmarkSharedAlloc64InGo(b *testing.B) {
	for name, pins := range map[string]bool{"leaf": false, "pin": true} {
		b.Run("path="+name, func(b *testing.B) {
			defer arena.PlainShared(pins)()
			benchEach(b, nil, alloc64)
		})
	}
}

func BenchmarkSharedAlloc64Chunk1M(b *testing.B) {
	benchEach(b, &arena.SharedOptions{ChunkBytes: 1 << 20}, alloc64)
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

func BenchmarkSharedZeroed64(b *testing.B) {
	benchEach(b, nil, func(s *arena.Shared, n int) {
		for i := range n {
			if _, err := s.Zeroed(64, 8); err != nil {
				panic(err)
			}
			if i%benchResetEach == 0 {
				s.Reset()
			}
		}
	})
}

func BenchmarkSharedFree(b *testing.B) {
	block := make([]byte, 64)
	benchEach(b, nil, func(s *arena.Shared, n int) {
		for range n {
			s.Free(block)
		}
	})
}

func BenchmarkSharedGuard(b *testing.B) {
	benchEach(b, nil, func(s *arena.Shared, n int) {
		for range n {
			s.Enter().Leave()
		}
	})
}

func BenchmarkSharedReset(b *testing.B) {
	benchEach(b, nil, func(s *arena.Shared, n int) {
		for range n {
			s.Alloc(64, 8)
			s.Reset()
		}
	})
}

// The time of a block in a spare dedicated chunk, with its share of the Reset.
func BenchmarkSharedLarge(b *testing.B) {
	for _, blocks := range []int{1000, 10_000, 40_000} {
		b.Run(fmt.Sprintf("blocks=%d", blocks), func(b *testing.B) {
			s := newShared(b, newHeap(b), nil)
			n := 0
			for b.Loop() {
				if _, err := s.Alloc(66<<10, 8); err != nil {
					b.Fatal(err)
				}
				if n++; n%blocks == 0 {
					s.Reset()
				}
			}
		})
	}
}

func BenchmarkSharedStats(b *testing.B) {
	benchEach(b, nil, func(s *arena.Shared, n int) {
		for range n {
			s.Alloc(64, 8)
			s.Stats()
		}
	})
}

// The lower bound: entering a slot and counting in it.
func BenchmarkSharedPin(b *testing.B) {
	var holders pin.Holders
	counts := make([]struct {
		n int
		_ [120]byte
	}, max(64, runtime.GOMAXPROCS(0)))
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for range b.N {
				slot := holders.Enter()
				counts[slot].n++
				holders.Leave(slot)
			}
		})
	}
	wg.Wait()
}
