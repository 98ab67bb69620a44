// Memory from Go's heap: guarantees of such builds only.

//go:build race

package vm

import (
	"errors"
	"runtime"
	"testing"
	"weak"
)

// HugePages and later advice would change how Go's heap works, so it is refused.
func TestAdviceDoesNotChangeGosHeap(t *testing.T) {
	addr, size := committed(t, 1)
	for a := HugePages; int(a) < numAdvices; a++ {
		if err := Advise(addr, size, a); !errors.Is(err, ErrUnsupported) {
			t.Errorf("advice %d: %v, want ErrUnsupported", a, err)
		}
	}
}

// Go's heap throws if the system refuses memory, so Reserve refuses large sizes itself.
func TestReservationsOfGosHeapAreBounded(t *testing.T) {
	page := PageBytes()
	if _, err := Reserve(maxBlockBytes, page); !errors.Is(err, ErrNoMemory) {
		t.Errorf("%d bytes at once: %v, want ErrNoMemory", maxBlockBytes, err)
	}
	before := backing.bytes
	reserved(t, 1)
	reserved(t, 2)
	if got := backing.bytes - before; got != 5*page {
		t.Errorf("3 pages and one behind each count as %d bytes", got)
	}
	left := maxBackingBytes - backing.bytes
	backing.bytes += left
	_, err := Reserve(page, page)
	backing.bytes -= left
	if !errors.Is(err, ErrNoMemory) {
		t.Errorf("a page more than all: %v, want ErrNoMemory", err)
	}
}

// An address keeps nothing alive, so the package keeps all reservations alive.
func TestCollectorKeepsEveryReservation(t *testing.T) {
	var all []weak.Pointer[byte]
	for range 3 {
		addr, _ := committed(t, 8)
		all = append(all, weak.Make((*byte)(Pointer(addr))))
	}
	for range 3 {
		runtime.GC()
	}
	for i, p := range all {
		if p.Value() == nil {
			t.Errorf("reservation %d was collected", i)
		}
	}
}
