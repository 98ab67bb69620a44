// Pin: a goroutine holds a slot by staying on its processor.
//
// A pinned goroutine is neither preempted nor moved, so it has what belongs to
// its processor to itself, without an atomic operation. portable.go is the
// other way.

//go:build !race && !freehold_portable && !asan

// Package pin gives goroutines what belongs to the processor they run on. A
// [Table] has a slot for each processor; the slot's holder, a goroutine at a
// time, has the slot's entry to itself.
//
// While a goroutine holds a slot it must not block, allocate on the Go heap,
// panic, take a lock, hold a second slot or touch memory that may fault. Slow
// paths are a loop of enter, try, leave, with EnterAt from the second round on;
// the goroutine may get another slot all the same.
package pin

import (
	"runtime"
	"sync/atomic"
	_ "unsafe" // for linkname

	"github.com/freehold-go/freehold/internal/lockrank"
)

// Locked reports whether slots are locks, which are slower than pins.
const Locked = false

// slots returns how many slots a new table has: one for each processor that
// there is or that GOMAXPROCS may usefully add, and room for those that a process
// is given later.
func slots() int {
	processors := max(runtime.GOMAXPROCS(0), runtime.NumCPU())
	n := firstSlots
	for n < min(processors, maxSlots) {
		n *= 4
	}
	return n
}

// Holders are those who hold the slots of one table. The zero value is ready.
type Holders struct{}

// Enter returns the number of the slot that the goroutine holds until Leave: its
// processor's, which may be beyond the table.
func (*Holders) Enter() int { return procPin() }

// EnterAt is Enter for the next try of a slow path. It returns the given slot,
// where the try before was, if the build can choose and nobody holds it.
// Otherwise a slow path might fill one slot and look for it at another.
func (*Holders) EnterAt(int) int { return procPin() }

// Leave ends what Enter began.
func (*Holders) Leave(int) { procUnpin() }

// all calls f. Where the build can, f holds all slots.
func (*Holders) all(f func()) { f() }

func (*Holders) wait(patient bool) { world.wait(patient, readMemStats) }

// world stops all processors.
var world stops

// stops are stops of the world, which waiters share; see table.go.
type stops struct {
	mu    lockrank.Mutex[lockrank.Leaf] // held during a stop
	begun atomic.Uint64                 // grows under mu
}

// wait returns after a stop that began after the call of wait: another waiter's,
// or its own. If patient is set, it first lets goroutines run that may wait too.
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

// procPin and procUnpin are on the runtime's list of names that it keeps for
// packages outside (go.dev/issue/67401).

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()
