package arena_test

import (
	"fmt"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
)

type node struct{ words [8]int64 } // 64 bytes

// keep consumes results, so that the compiler cannot drop the calls.
var keep []byte

const roundBytes = 1 << 20 // bytes of blocks between two Resets

// BenchmarkAlloc allocates blocks of 64 bytes, with a Reset after each MiB. The
// row impl=reference is the lower bound: a bump of a local variable.
func BenchmarkAlloc(b *testing.B) {
	const size = 64
	b.Run("impl=reference", func(b *testing.B) {
		mem, pos := make([]byte, roundBytes), 0
		for range b.N {
			from := (pos + 7) &^ 7
			to := from + size
			if to > len(mem) {
				from, to = 0, size
			}
			block := mem[from:to:to]
			pos = to
			block[0] = 1
		}
	})
	b.Run("impl=arena", func(b *testing.B) {
		a := newArena(b)
		inRounds(b, a, func(n int) {
			for range n {
				block, err := a.Alloc(size, 8)
				if err != nil {
					b.Fatal(err)
				}
				block[0] = 1
			}
		})
	})
	b.Run("impl=arena/zeroed", func(b *testing.B) {
		a := newArena(b)
		inRounds(b, a, func(n int) {
			for range n {
				block, err := a.Zeroed(size, 8)
				if err != nil {
					b.Fatal(err)
				}
				block[0] = 1
			}
		})
	})
	b.Run("impl=arena/odd", func(b *testing.B) { // each block needs padding
		a := newArena(b)
		inRounds(b, a, func(n int) {
			for range n {
				block, err := a.Alloc(size-7, 8)
				if err != nil {
					b.Fatal(err)
				}
				block[0] = 1
			}
		})
	})
	b.Run("impl=goheap", func(b *testing.B) {
		for range b.N {
			keep = make([]byte, size)
		}
	})
}

// BenchmarkNew allocates zeroed values of 64 bytes by freehold.New.
func BenchmarkNew(b *testing.B) {
	b.Run("impl=arena", func(b *testing.B) {
		a := newArena(b)
		inRounds(b, a, func(n int) {
			for range n {
				p, err := freehold.New[node](a)
				if err != nil {
					b.Fatal(err)
				}
				p.words[0] = 1
			}
		})
	})
	var p *node
	b.Run("impl=goheap", func(b *testing.B) {
		for range b.N {
			p = new(node)
		}
	})
	_ = p
}

// inRounds calls use to take b.N blocks of 64 bytes, with a Reset after each MiB.
func inRounds(b *testing.B, a *arena.Arena, use func(n int)) {
	for left := b.N; left > 0; left -= roundBytes / 64 {
		use(min(left, roundBytes/64))
		a.Reset()
	}
}

func newArena(b *testing.B) *arena.Arena {
	heap := freehold.NewHeap(nil)
	a := arena.New(heap, nil)
	b.Cleanup(func() {
		a.Close()
		heap.Close()
	})
	return a
}

// BenchmarkReset ends blocks of the given bytes in total. It counts the Reset and
// the first block of the next round.
func BenchmarkReset(b *testing.B) {
	for _, mib := range []int{1, 64, 1024} {
		b.Run(fmt.Sprintf("MiB=%d", mib), func(b *testing.B) {
			a := newArena(b)
			for range mib << 10 {
				if _, err := a.Alloc(1<<10, 8); err != nil {
					b.Fatal(err)
				}
			}
			b.ResetTimer()
			for range b.N {
				a.Reset()
				if _, err := a.Alloc(1<<10, 8); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRewind is a Mark, a block of 64 bytes and a Rewind.
func BenchmarkRewind(b *testing.B) {
	a := newArena(b)
	if _, err := a.Alloc(64, 8); err != nil {
		b.Fatal(err)
	}
	for range b.N {
		m := a.Mark()
		if _, err := a.Alloc(64, 8); err != nil {
			b.Fatal(err)
		}
		a.Rewind(m)
	}
}

// BenchmarkRequest is one request: a new arena, ten blocks, and Put or Close.
func BenchmarkRequest(b *testing.B) {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	recycler := arena.NewRecycler(heap, nil)
	defer recycler.Close()
	use := func(a *arena.Arena, err error) *arena.Arena {
		if err != nil {
			b.Fatal(err)
		}
		for range 10 {
			if _, err := a.Alloc(64, 8); err != nil {
				b.Fatal(err)
			}
		}
		return a
	}
	b.Run("impl=new", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			use(arena.New(heap, nil), nil).Close()
		}
	})
	b.Run("impl=recycler", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			recycler.Put(use(recycler.Get(0)))
		}
	})
}
