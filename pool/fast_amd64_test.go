//go:build !race && !freehold_portable && !freehold_debug

package pool

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

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
	b := NewBlocks(freehold.Default(), 64, 8, nil)
	defer b.Close()
	p := New[int](freehold.Default(), nil)
	defer p.Close()

	var slow [4]atomic.Int64 // calls of each in Go
	was := plain
	defer func() { plain = was }()
	plain = functions{
		get:   func(b *Blocks) (unsafe.Pointer, error) { slow[0].Add(1); return was.get(b) },
		put:   func(b *Blocks, p unsafe.Pointer) { slow[1].Add(1); was.put(b, p) },
		alloc: func(b *Blocks, size, align int) ([]byte, error) { slow[2].Add(1); return was.alloc(b, size, align) },
		free:  func(b *Blocks, r []byte) { slow[3].Add(1); was.free(b, r) },
	}
	const rounds = 5_000
	var n atomic.Int64 // rounds beyond the first slots
	var wg sync.WaitGroup
	for range procs { // busy, so that all processors come to run
		wg.Go(func() {
			for n.Load() < rounds {
				slot := b.stacks.Enter()
				b.stacks.Leave(slot)
				if slot < pin.FirstSlots {
					runtime.Gosched()
					continue
				}
				n.Add(1)
				p.Put(freehold.Must(p.Get()))
				b.Free(freehold.Must(b.Alloc(64, 8)))
			}
		})
	}
	wg.Wait()
	for i, name := range []string{"get", "put", "alloc", "free"} {
		if n := slow[i].Load(); n > rounds/2 {
			t.Errorf("%d calls of %s in Go in %d rounds", n, name, rounds)
		}
	}
}
