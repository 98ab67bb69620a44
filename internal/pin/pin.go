// Pin: per-processor slots. A goroutine holds one by staying on its processor.
//
// A pinned goroutine is neither preempted nor moved, so it uses its processor's slot exclusively,
// without an atomic operation. portable.go uses locks instead.

//go:build !race && !freehold_portable && !asan

// Package pin provides per-processor data (per-P caches). A [Table] has a slot for each
// processor. One goroutine at a time holds a slot, and only it uses the slot's value.
//
// While a goroutine holds a slot it must not block, allocate on the Go heap, panic, take a lock,
// hold a second slot or touch memory that may fault. Slow paths are a loop of enter, try, leave,
// with EnterAt from the second round on; the goroutine may still get another slot.
package pin

import (
	"runtime"
	"sync/atomic"
	_ "unsafe" // for linkname

	"github.com/freehold-go/freehold/internal/lockrank"
)

// Locked reports whether slots are locks, which are slower than pins.
const Locked = false

// slots returns the number of slots of a new table: one for each processor of the machine or of
// GOMAXPROCS, and room for processors that the process is given later.
func slots() int {
	processors := max(runtime.GOMAXPROCS(0), runtime.NumCPU())
	n := firstSlots
	for n < min(processors, maxSlots) {
		n *= 4
	}
	return n
}

// Holders enters and leaves the slots of one table. The zero value is ready.
type Holders struct{}

// Enter returns the number of the slot that the goroutine holds until Leave: the number of its
// processor, which may be beyond the table.
func (*Holders) Enter() int { return procPin() }

// EnterAt is Enter for the next try of a slow path. If the build can choose and the given slot,
// of the last try, is free, it returns that slot. Otherwise a slow path might fill one slot and
// then look in another.
func (*Holders) EnterAt(int) int { return procPin() }

// Leave ends the hold of a slot that Enter or EnterAt began.
func (*Holders) Leave(int) { procUnpin() }

// all calls f. If slots are locks, f holds all of them.
func (*Holders) all(f func()) { f() }

func (*Holders) wait(patient bool) { world.wait(patient, readMemStats) }

// world stops all processors.
var world stops

// stops makes stops of the world that several waiters share; see table.go.
type stops struct {
	mu    lockrank.Mutex[lockrank.Leaf] // held during a stop
	begun atomic.Uint64                 // grows under mu
}

// wait returns after a stop that began after the call of wait: another waiter's or its own. If
// patient, it first yields, so that other goroutines may come to wait too.
func (s *stops) wait(patient bool, stop func()) {
	arrived := s.begun.Load()
	if patient {
		runtime.Gosched()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun.Load() == arrived {
		s.begun.Add(1)
		stop()
	}
}

// readMemStats stops the world. The caller holds world.mu.
func readMemStats() { runtime.ReadMemStats(&memStats) }

var memStats runtime.MemStats

// The runtime keeps procPin and procUnpin for outside packages (go.dev/issue/67401).

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()
