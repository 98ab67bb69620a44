//go:build !race && !freehold_portable && !freehold_debug && !asan

package pool

import (
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/pin/pintest"
)

func TestSlotsBeyondTheFirst(t *testing.T) {
	pintest.SlotsBeyondTheFirst(t, func(slow func(call string)) (calls func()) {
		b := NewBlocks(freehold.Default(), 64, 8, nil)
		t.Cleanup(b.Close)
		p := New[int](freehold.Default(), nil)
		t.Cleanup(p.Close)
		was := plain
		t.Cleanup(func() { plain = was })
		plain = functions{
			get:   func(b *Blocks) (unsafe.Pointer, error) { slow("get"); return was.get(b) },
			put:   func(b *Blocks, p unsafe.Pointer) { slow("put"); was.put(b, p) },
			alloc: func(b *Blocks, size, align int) ([]byte, error) { slow("alloc"); return was.alloc(b, size, align) },
			free:  func(b *Blocks, r []byte) { slow("free"); was.free(b, r) },
		}
		return func() {
			p.Put(freehold.Must(p.Get()))
			b.Free(freehold.Must(b.Alloc(64, 8)))
		}
	})
}
