//go:build !race && !freehold_portable && !asan

package arena

import (
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/pin/pintest"
)

func TestSlotsBeyondTheFirst(t *testing.T) {
	for name, call := range map[string]func(s *Shared, size, align int) ([]byte, error){"alloc": (*Shared).Alloc, "zeroed": (*Shared).Zeroed} {
		t.Run(name, func(t *testing.T) {
			pintest.SlotsBeyondTheFirst(t, func(slow func(call string)) (calls func()) {
				s := newSharedOver(t, freehold.Default(), nil)
				was := plain
				t.Cleanup(func() { plain = was })
				plain = functions{
					alloc:  func(s *Shared, size, align int) ([]byte, error) { slow("alloc"); return was.alloc(s, size, align) },
					zeroed: func(s *Shared, size, align int) ([]byte, error) { slow("zeroed"); return was.zeroed(s, size, align) },
				}
				return func() { freehold.Must(call(s, 8, 8)) }
			})
		})
	}
}
