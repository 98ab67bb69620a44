// Faults: calls that the system refuses.

package heap

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/vm"
)

var refuse = vm.Refuse

// Every public operation meets every failure of every call below it, once and
// from then on: the error is right, nothing changed, and it works later.
func TestEveryCallBelowFails(t *testing.T) {
	type world struct {
		h    *Heap
		live [][]byte
	}
	hold := func(w *world, b []byte, err error) error {
		if err == nil {
			fill(b, byte(len(w.live)+1))
			w.live = append(w.live, b)
		}
		return err
	}
	operations := map[string]func(w *world) error{
		"Alloc small": func(w *world) error {
			b, err := w.h.Alloc(100, 8, false)
			return hold(w, b, err)
		},
		"Zeroed many small": func(w *world) error {
			for i := range 3000 {
				b, err := w.h.Alloc(1+i*3, 16, true)
				if err != nil {
					return err
				}
				if !allSet(b, 0) {
					return errors.New("not zero")
				}
				w.h.Free(b)
			}
			return nil
		},
		"Alloc large aligned": func(w *world) error {
			b, err := w.h.Alloc(100000, 64<<10, false)
			return hold(w, b, err)
		},
		"Alloc huge": func(w *world) error {
			b, err := w.h.Alloc(200<<20, 8, false)
			if err == nil {
				w.h.Free(b)
			}
			return err
		},
		"Resize": func(w *world) error {
			for i, b := range w.live {
				if r, ok := w.h.Resize(b, len(b)*2); ok {
					fill(r, byte(i+1))
					w.live[i] = r
				}
			}
			return nil
		},
		"Free": func(w *world) error {
			for len(w.live) > 2 {
				w.h.Free(w.live[len(w.live)-1])
				w.live = w.live[:len(w.live)-1]
			}
			return nil
		},
		"Trim":  func(w *world) error { w.h.Trim(); return nil },
		"Tick":  func(w *world) error { w.h.Tick(); return nil },
		"Stats": func(w *world) error { w.h.Stats(); return nil },
	}
	points := 0
	for name, op := range operations {
		for _, once := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/once=%v", name, once), func(t *testing.T) {
				for n := 1; ; n++ {
					w := &world{h: newHeap(t, Options{MaxBytes: 600 << 20})}
					if name != "Alloc small" { // that one begins with an empty heap
						for _, size := range []int{10, 9 << 20, 40000, 2000, 1 << 20} {
							hold(w, alloc(t, w.h, size), nil)
						}
						w.h.Free(alloc(t, w.h, 5<<20))
					}
					reached := false
					fail := vm.FailNth(n, once, syscall.ENOMEM)
					restore := vm.SetFault(func(op vm.Op) error {
						err := fail(op)
						reached = reached || err != nil
						return err
					})
					err := op(w)
					restore()
					points++
					if err != nil && !errors.Is(err, pages.ErrOutOfMemory) {
						t.Fatalf("call %d fails: %v", n, err)
					}
					for i, b := range w.live {
						if !allSet(b, byte(i+1)) {
							t.Fatalf("call %d fails: block %d of %d bytes changed", n, i, len(b))
						}
					}
					w.h.check(t)
					if err := op(w); err != nil {
						t.Fatalf("call %d failed, and then again: %v", n, err)
					}
					for _, b := range w.live {
						w.h.Free(b)
					}
					w.h.Trim()
					w.h.check(t)
					if st := w.h.Stats(); st.Committed != st.Metadata {
						t.Fatalf("call %d failed; after Trim: %+v", n, st)
					}
					w.h.Close()
					if !reached {
						break
					}
				}
			})
		}
	}
	t.Logf("%d points", points)
}
