//go:build !race && !freehold_portable && !asan

package arena

import (
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/test/pintest"
)

func TestSlotsBeyondTheFirst(t *testing.T) {
	pintest.SlotsBeyondTheFirst(t, func(slow func(call string)) pintest.Slots {
		const size = 8
		s := newSharedOver(t, freehold.Default(), nil)
		was := plain
		t.Cleanup(func() { plain = was })
		plain = functions{
			alloc:  func(*Shared, int, int, uintptr, uintptr) ([]byte, error) { slow("alloc"); return nil, nil },
			zeroed: func(*Shared, int, int, uintptr, uintptr) ([]byte, error) { slow("zeroed"); return nil, nil },
		}
		return pintest.Slots{
			Fill: func() { freehold.Must(was.zeroed(s, size, size, 0, 0)) },
			Serve: func(slot int) bool {
				c := s.at(slot)
				if c == nil || !c.zero || len(c.mem)-int(c.at) < 2*size {
					return false
				}
				s.Alloc(size, size)
				s.Zeroed(size, size)
				return true
			},
		}
	})
}
