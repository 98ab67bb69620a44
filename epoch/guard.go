// Guards: the readers' side, Enter and Leave.
//
// A processor has a cache line of slots in each Domain. Enter fills a slot of its processor in a
// leaf, in which the goroutine keeps its processor: see runtime.go of package pin. So no two
// readers fill one slot. Leave clears the slot, on whichever processor the goroutine then runs.
//
//	             slots of processor 0      of processor 1
//	Domain  ---> | 7 | 0 | 9 | 0 | ... |   | 9 | 0 | 0 | 0 | ... |
//	               guards of epochs 7 and 9

package epoch

import (
	"math"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/pin"
)

// Guard protects a reader in a [Domain], from Enter to Leave. While it is held, no epoch that ends
// after Enter passes, so blocks unlinked meanwhile, in any container of the Domain, stay valid. The
// goroutine may block and may pass the guard to another goroutine. Leave of the zero Guard panics.
type Guard struct {
	at    *atomic.Uint64 // a slot or a counter
	epoch uint64         // the number in the slot, or inCounter
}

// inCounter marks a guard in a counter. It is neither the number of an epoch nor a counter's value.
const inCounter = math.MaxUint64

// A line is the slots of one processor in a Domain.
type line [8]atomic.Uint64

// processors is the number of lines of each Domain. A processor that is added later has none.
var processors = max(runtime.NumCPU(), runtime.GOMAXPROCS(0))

// functions holds Enter's implementation. Package pin expects at behind four words; callers pass 0.
type functions struct {
	enter func(d *Domain, _, _, _, at uintptr) Guard
}

// Enter calls fast: the leaf if package pin can call it without a pin, or else pinned. pinned calls
// the leaf with a slot of package pin, and runs the slow path after it has left the slot.
var fast, pinned functions

func init() {
	pinned = functions{enterPinned}
	fast = functions{pin.Unpinned(enterLeaf, enterMissed, enterPinned)}
}

// Enter returns a guard in the current epoch. The caller must call its Leave. A block that the
// reader finds linked after Enter is not reused before Leave. Enter takes no lock and never waits.
// With Leave it takes about 3 ns (BenchmarkEnterLeave) on Linux, Windows and arm64. Elsewhere, and
// while a processor has eight guards, it takes two locked instructions.
func (d *Domain) Enter() Guard { return fast.enter(d, 0, 0, 0, 0) }

//go:nosplit
//go:noinline
//go:nocheckptr
func enterLeaf(d *Domain, _, _, _, at uintptr) Guard {
	processor := pin.SlotAt(at)
	first := d.slots.Load()
	if first == nil || processor >= processors {
		return enterMissed(d, 0, 0, 0, at)
	}
	s := (*atomic.Uint64)(unsafe.Add(unsafe.Pointer(first), uintptr(processor)*unsafe.Sizeof(line{})))
	if s.Load() != 0 {
		if s = (*line)(unsafe.Pointer(s)).empty(); s == nil {
			return enterMissed(d, 0, 0, 0, at)
		}
	}
	g, ok := d.fill(s, d.ended.Load()) // A1
	if !ok {
		return enterMissed(d, 0, 0, 0, at)
	}
	return g
}

// empty returns an empty slot, or nil.
func (l *line) empty() *atomic.Uint64 {
	for i := range l {
		if l[i].Load() == 0 {
			return &l[i]
		}
	}
	return nil
}

// fill is A2 and A3 of Enter, for an empty slot of the processor and epoch ended+1. If that is no
// longer the current epoch, it leaves no guard in the slot and reports false.
func (d *Domain) fill(s *atomic.Uint64, ended uint64) (Guard, bool) {
	set(s, ended+1)
	if d.ended.Load() != ended {
		set(s, 0)
		return Guard{}, false
	}
	return Guard{s, ended + 1}, true
}

// enterMissed is Enter's slow path. It is not inlined, so that the leaf calls nothing else.
//
//go:noinline
func enterMissed(d *Domain, _, _, _, at uintptr) Guard {
	if pin.Held(at) {
		return Guard{}
	}
	if d.slots.Load() == nil && haveFences() {
		d.addSlots()
		return d.Enter()
	}
	return d.count()
}

// addSlots gives the domain slots, unless another reader has done so.
func (d *Domain) addSlots() {
	d.slots.CompareAndSwap(nil, unsafe.SliceData(make([]line, processors)))
}

func enterPinned(d *Domain, _, _, _, _ uintptr) Guard {
	if d.slots.Load() != nil {
		slot := holders.Enter()
		g := enterLeaf(d, 0, 0, 0, uintptr(slot))
		holders.Leave(slot)
		if g.at != nil {
			return g
		}
	}
	return enterMissed(d, 0, 0, 0, pin.None)
}

var holders pin.Holders

// Leave ends the guard. After it the reader must not use the blocks that it found, unless it knows
// by other means that they are live. Call Leave exactly once. A second call panics if no other
// guard has taken its slot. Otherwise it goes undetected and ends another reader's guard.
func (g Guard) Leave() {
	if g.at.Load() != g.epoch {
		g.uncount()
		return
	}
	set(g.at, 0)
}

// oldestInSlots is B3: it returns the oldest epoch with a guard in a slot, or the largest number.
func (d *Domain) oldestInSlots() uint64 {
	oldest := uint64(math.MaxUint64)
	if first := d.slots.Load(); first != nil {
		slots := unsafe.Slice(&first[0], processors*len(line{}))
		for i := range slots {
			if n := slots[i].Load(); n != 0 {
				oldest = min(oldest, n)
			}
		}
	}
	return oldest
}

func leftTwice() { arg.Panicf("epoch.Guard.Leave", "the guard has left already") }
