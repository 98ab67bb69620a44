//go:build race || freehold_portable || asan

package pin

import (
	"testing"

	"github.com/freehold-go/freehold/internal/test/await"
)

// EnterAt returns the requested slot, or else the next free one. It waits if all slots are held.
func TestNextSlotWhereOneIsHeld(t *testing.T) {
	var h Holders
	const first = lockedSlots - 2
	for i := range lockedSlots {
		if got, want := h.EnterAt(first), (first+i)%lockedSlots; got != want {
			t.Fatalf("slot %d where %d are held, want %d", got, i, want)
		}
	}
	entered := make(chan bool, 1)
	slot := -1
	go func() {
		slot = h.EnterAt(first)
		entered <- true
	}()
	if !await.Lock("EnterAt", entered) {
		t.Fatal("entered where all slots are held")
	}
	h.Leave(first)
	if <-entered; slot != first {
		t.Errorf("slot %d, want %d", slot, first)
	}
}

// Each holds all slots while it calls its function.
func TestEachHoldsAllSlots(t *testing.T) {
	var none byte
	table := New[Table[byte]]()
	table.Init(&none)
	table.Install(table.Slot(3), func() *byte { return new(byte) })
	calls := 0
	table.Each(func(*byte) {
		calls++
		for i := range table.locks {
			if table.locks[i].TryLock() {
				t.Errorf("nobody holds slot %d", i)
			}
		}
	})
	if calls != 1 {
		t.Errorf("%d calls for one value", calls)
	}
	for i := range table.locks {
		if !table.locks[i].TryLock() {
			t.Errorf("slot %d is held after Each", i)
		}
	}
}

// Wait returns only after the holder of each slot has left.
func TestWaitOutlastsTheHolderOfEachSlot(t *testing.T) {
	for slot := range lockedSlots {
		var h Holders
		h.EnterAt(slot)
		returned := make(chan bool, 1)
		go func() {
			h.Wait()
			returned <- true
		}()
		if !await.Lock("wait", returned) {
			t.Errorf("Wait has not waited for slot %d", slot)
			continue
		}
		h.Leave(slot)
		<-returned
	}
}
