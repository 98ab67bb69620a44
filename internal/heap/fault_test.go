// Faults: what the system refuses.

package heap

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/freehold-go/freehold/internal/asan"
	"github.com/freehold-go/freehold/internal/vm"
)

// refuse has the system refuse every call of one kind.
func refuse(refused vm.Op) (restore func()) {
	return vm.SetFault(func(op vm.Op) error {
		if op == refused {
			return syscall.ENOMEM
		}
		return nil
	})
}

// callsOf counts what f asks of the system.
func callsOf(f func()) (calls [vm.NumOps]int) {
	defer vm.SetFault(func(op vm.Op) error { calls[op]++; return nil })()
	f()
	return calls
}

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
						for _, size := range []int{10, 3 << 20, 40000, 2000, 1 << 20} {
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
					if err != nil && !errors.Is(err, ErrOutOfMemory) {
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

// child runs this test alone in a process of its own, and reports whether it
// is that process.
func child(t *testing.T, shell string) bool {
	if os.Getenv("FREEHOLD_CHILD") != "" {
		return true
	}
	if exec.Command(os.Args[0], "-test.list=^$").Run() != nil {
		t.Skip("the test binary runs under an emulator, and cannot start itself")
	}
	cmd := exec.Command("sh", "-c", shell+` exec "$0" "$@"`, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "FREEHOLD_CHILD=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("%v\n%s", err, out)
	}
	return false
}

// With little address space the first reservation is refused; smaller regions
// serve, none takes more than half of what is left, and Go's heap keeps some. When they
// are used up there is an error, and later memory again.
func TestLittleAddressSpace(t *testing.T) {
	if vm.GoBacked {
		t.Skip("the memory is Go's own")
	}
	if asan.Enabled {
		t.Skip("the sanitizer's addresses exceed the limit")
	}
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no shell to set the limit with")
	}
	if !child(t, "ulimit -v 3000000 &&") {
		return
	}
	h := newHeap(t, Options{})
	if vm.AddressesLeft() == ^uintptr(0) {
		t.Skip("the system does not say how many addresses are left")
	}
	if _, err := h.Alloc(int(vm.AddressesLeft()/4*3), 8, false); !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("three quarters of the addresses left: %v", err)
	}
	var before uintptr // addresses left when the newest region was reserved
	defer vm.SetFault(func(op vm.Op) error {
		if op == vm.OpReserve {
			before = vm.AddressesLeft()
		}
		return nil
	})()
	var live [][]byte
	newest := &addresses.first
	for {
		b, err := h.Alloc(10<<20, 8, false)
		if err != nil {
			if !errors.Is(err, ErrOutOfMemory) {
				t.Fatal(err)
			}
			break
		}
		b[0] = 1
		live = append(live, b)
		// Go may take some of what is left at any time, so this is not looked at in the end.
		if all := addresses.chained.Load(); all != nil && newest != (*all)[len(*all)-1] {
			newest = (*all)[len(*all)-1]
			if left := before - newest.size; left < goBytes/2 {
				t.Errorf("%d MiB of addresses left for Go", left>>20)
			}
		}
		if len(live) > 300 {
			t.Fatal("the limit was not set")
		}
	}
	if len(live) < 20 {
		t.Errorf("only %d blocks of 10 MiB in 3 GB of addresses", len(live))
	}
	if newest == &addresses.first {
		t.Error("no small regions")
	}
	for _, b := range live {
		h.Free(b)
	}
	for range len(live) {
		if b, err := h.Alloc(10<<20, 8, false); err != nil {
			t.Fatal(err)
		} else {
			b[0] = 1
		}
	}
	h.check(t)
}
