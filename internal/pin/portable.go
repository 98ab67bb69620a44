// Pin without the runtime: each slot has a lock.
//
// A goroutine hashes the address of its stack frame to the slot that it prefers, and takes
// another if that is held. A call at another stack depth may prefer another slot. This is slower
// than pin.go, but plain Go, and the race detector understands it.

//go:build race || freehold_portable || asan

// Package pin gives goroutines slots: see pin.go.
package pin

import (
	"sync"
	"unsafe"
)

// Locked reports whether slots are locks, which are slower than pins.
const Locked = true

const (
	slotBits    = 5
	lockedSlots = 1 << slotBits
)

func slots() int { return lockedSlots }

// Holders enters and leaves the slots of one table. The zero value is ready.
type Holders struct{ locks [lockedSlots]lock }

type lock struct {
	sync.Mutex
	_ [64 - unsafe.Sizeof(sync.Mutex{})]byte // a cache line each
}

// Enter returns the number of the slot that the goroutine holds until Leave.
func (h *Holders) Enter() int { return h.EnterAt(int(Stripe(slotBits))) }

// EnterAt is Enter with a preferred slot.
func (h *Holders) EnterAt(first int) int {
	for i := range lockedSlots {
		slot := (first + i) % lockedSlots
		if h.locks[slot].TryLock() {
			return slot
		}
	}
	h.locks[first].Lock()
	return first
}

// Leave ends the hold of a slot that Enter or EnterAt began.
func (h *Holders) Leave(slot int) { h.locks[slot].Unlock() }

// all calls f, which then holds all slots.
func (h *Holders) all(f func()) {
	for i := range h.locks {
		h.locks[i].Lock()
	}
	f()
	for i := range h.locks {
		h.locks[i].Unlock()
	}
}

func (h *Holders) wait(bool) {
	for i := range h.locks {
		h.locks[i].Lock()
		h.locks[i].Unlock()
	}
}
