//go:build !race && !freehold_portable && !asan

package pool

import (
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/poison"
	"github.com/freehold-go/freehold/internal/test/pintest"
)

func TestSlotsBeyondTheFirst(t *testing.T) {
	defer poison.Set(false)() // the assembly serves no checked pool
	pintest.SlotsBeyondTheFirst(t, func(slow func(call string)) pintest.Slots {
		// The blocks that all stacks hold fit into the first chunk of each pool.
		b := NewBlocks(freehold.Default(), 8, 8, nil)
		t.Cleanup(b.Close)
		p := New[int](freehold.Default(), nil)
		t.Cleanup(p.Close)
		was := plain
		t.Cleanup(func() { plain = was })
		plain = functions{
			get: func(*Blocks, uintptr, uintptr, uintptr, uintptr) (unsafe.Pointer, error) {
				slow("get")
				return nil, nil
			},
			put:   func(*Blocks, unsafe.Pointer, uintptr, uintptr, uintptr) bool { slow("put"); return true },
			alloc: func(*Blocks, int, int, uintptr, uintptr) ([]byte, error) { slow("alloc"); return nil, nil },
			free:  func(*Blocks, []byte, uintptr) bool { slow("free"); return true },
		}
		return pintest.Slots{
			Fill: func() {
				was.put(&p.blocks, freehold.Must(was.get(&p.blocks, 0, 0, 0, 0)), 0, 0, 0)
				was.free(b, freehold.Must(was.alloc(b, 8, 8, 0, 0)), 0)
			},
			Serve: func(slot int) bool {
				if !servesPair(b, slot) || !servesPair(&p.blocks, slot) {
					return false
				}
				if q, _ := p.Get(); q != nil {
					p.Put(q)
				}
				if r, _ := b.Alloc(8, 8); r != nil {
					b.Free(r)
				}
				return true
			},
		}
	})
}

// servesPair reports whether assembly can get a block from a slot and put it there again:
// the stack has one, of a chunk in the first place of the table where it may be.
func servesPair(b *Blocks, slot int) bool {
	s := b.stacks.Value(slot)
	n := s.n.load()
	if n == 0 {
		return false
	}
	base := s.entries[n-1].addr & b.chunkMask
	t := b.table.Load()
	return t.at(first(base)).base.Load() == base
}
