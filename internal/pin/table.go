// Table: a slot for each processor (per-P caches), and the proof that Drain is safe.
//
//	                                 length slots, one for each processor
//	| the rest of O | Table | length |  0  |  1   | ... |  15 |  16  |  17 | ...
//	                                    e    none          e    none    e
//	|<----------------------- O ----------------------------->|
//
// Each value e is used by its slot's holder alone.
//
// A Table and its first slots are the end of an object O. On larger machines [New] allocates the
// other slots behind O. So a value is at a constant offset from O, with no pointer to load, and
// assembly finds the value of a first slot without the length: one more load in each call would
// show in BenchmarkPair of package pool.
//
// Install puts a value into any empty slot. Take, by the slot's holder, and Drain, from all
// slots, remove values.
//
// # Why no goroutine uses a value that Drain has taken
//
// A holder loads the value of its slot after Enter and does not use it after Leave. Drain forbids
// new values, swaps each value for none, and Waits. In the order of these atomic operations, the
// load comes
//
//   - after the swap: it finds none, or a value that was installed later, which is another one.
//   - or before the swap: then Enter came before Wait, which returns after Leave. All that the
//     holder did with the value happens before that.
//
// If slots are locks, Wait is correct because it takes each lock once. If goroutines are pinned,
// it is correct because it stops the world: the runtime stops a processor only where its goroutine
// may be preempted, and a pinned goroutine may not, neither by the flag that function prologues
// check nor by a signal. Stopping and starting the world also orders memory.
//
// Callers of Wait share stops. A Wait reads the count of begun stops, takes the lock that is held
// during a stop, and stops the world only if the count is still the same. The count grows before
// each stop, under the lock. If it has grown, a stop began after the reading, and so after the
// swap. It has ended, since the lock was free. That stop waited for the holder, just as Wait's own
// would.
//
// Assembly and leaves hold a slot from their load of the processor's number until they return, or
// call or jump to another function. In between the goroutine stays on its processor (runtime.go
// says why), and a stop of the world, by Wait, ReadMemStats or the collector, waits for it. The
// collector does not scan their registers, and need not: the table keeps the value alive, and
// after the swap Drain does. They store no Go pointer, so they need no write barrier.
//
// Take needs no Wait: only its caller may use the value.

package pin

import (
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/lockrank"
)

// A Table has a slot for each processor, with a value or empty. It is the last field of an object
// that [New] made, and Init makes it ready. In any other object it has no slots, and first is all
// nil. It must not be copied.
//
// A processor that was added after New may be beyond the table, as the 1025th always is. It has
// no slot, and its goroutines do without.
//
// mu is held while the function given to Install runs, but not during the function given to Drain.
type Table[T any] struct {
	none *T // the value of empty slots
	Holders

	mu     lockrank.Mutex[lockrank.Caches] // guards drains, and stores into slots
	drains int                             // number of Drains under way

	_      [0]atomic.Uint64    // aligns length to 8 on 386 too: no padding behind first
	length uint64              // number of slots; fixed
	first  [firstSlots]Slot[T] // the other slots are behind it
}

// New returns a zero O whose last field is a Table with a slot for each processor.
//
// Precondition: nothing follows the Table in O, not even padding. Each O asserts that by a
// constant.
func New[O any]() *O {
	n := slots()
	var o *O
	switch {
	case n <= firstSlots:
		o = new(O)
	case n <= 64:
		o = newWith[O, [64 - firstSlots]unsafe.Pointer]()
	case n <= 256:
		o = newWith[O, [256 - firstSlots]unsafe.Pointer]()
	default:
		o = newWith[O, [maxSlots - firstSlots]unsafe.Pointer]()
	}
	var t Table[byte]
	*(*uint64)(unsafe.Add(unsafe.Pointer(o), unsafe.Sizeof(*o)-unsafe.Sizeof(t)+unsafe.Offsetof(t.length))) = uint64(n)
	return o
}

const (
	firstSlots = 16
	maxSlots   = 1024
)

// newWith returns a zero O with More behind it. More is an array of pointers, so the collector
// finds the values.
func newWith[O, More any]() *O {
	return &new(struct {
		object O
		more   More
	}).object
}

// A Slot holds a value or is empty. It is part of a Table.
type Slot[T any] struct{ value atomic.Pointer[T] }

// Value returns the slot's value. The caller holds the slot.
func (s *Slot[T]) Value() *T { return s.value.Load() }

// Init makes all slots empty. The value of an empty slot is none, a sentinel that is never
// written.
func (t *Table[T]) Init(none *T) {
	t.none = none
	for i := range t.Len() {
		t.At(i).value.Store(none)
	}
}

// Len returns the number of slots.
func (t *Table[T]) Len() int { return int(t.length) }

// Has reports whether the table has the slot with the given number.
func (t *Table[T]) Has(slot int) bool { return uint64(slot) < t.length }

// At returns the slot with the given number, which the table has.
func (t *Table[T]) At(i int) *Slot[T] {
	return (*Slot[T])(unsafe.Add(unsafe.Pointer(&t.first), uintptr(i)*unsafe.Sizeof(Slot[T]{})))
}

// Slot returns the slot with the given number, or nil beyond the table.
func (t *Table[T]) Slot(slot int) *Slot[T] {
	if t.Has(slot) {
		return t.At(slot)
	}
	return nil
}

// Value returns the value of a slot that the caller holds, or none beyond the table.
func (t *Table[T]) Value(slot int) *T {
	if t.Has(slot) {
		return t.ValueAt(slot)
	}
	return t.none
}

// ValueAt is At and Value in one, for leaves: with -N each call to be inlined takes stack space.
// The table has the slot, and the caller holds it.
func (t *Table[T]) ValueAt(slot int) *T {
	return (*Slot[T])(unsafe.Add(unsafe.Pointer(&t.first), uintptr(slot)*unsafe.Sizeof(Slot[T]{}))).value.Load()
}

// Install puts the result of create into a slot, and reports whether it did. It does nothing if s
// is nil or has a value, if create returns nil, or during a Drain. The caller holds no slot.
func (t *Table[T]) Install(s *Slot[T], create func() *T) bool {
	if s == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.drains > 0 || s.value.Load() != t.none {
		return false
	}
	e := create()
	if e == nil {
		return false
	}
	s.value.Store(e)
	return true
}

// Take empties a slot that the caller holds and returns its value, or none.
func (t *Table[T]) Take(slot int) *T {
	if s := t.Slot(slot); s != nil {
		return s.value.Swap(t.none)
	}
	return t.none
}

// Drain empties the slots with values that match, or all if match is nil. It waits until no
// goroutine uses the values any more, and calls f with them. Install does nothing until f
// returns. The caller holds no slot. Holders may change their values while match reads them.
// With pinned goroutines Drain stops the world, even without values, unless it can share a stop.
func (t *Table[T]) Drain(match func(*T) bool, f func(taken []*T)) {
	t.drain(match, false, f)
}

// DrainPatiently is Drain, but yields before it waits, so that concurrent drains of many tables
// share a stop of the world. On a busy machine it takes a few milliseconds more.
func (t *Table[T]) DrainPatiently(match func(*T) bool, f func(taken []*T)) {
	t.drain(match, true, f)
}

func (t *Table[T]) drain(match func(*T) bool, patient bool, f func(taken []*T)) {
	taken := t.takeAll(match)
	defer t.drained()
	t.waitFor(patient)
	f(taken)
}

// takeAll is the first two steps of Drain: it forbids new values and swaps the values.
func (t *Table[T]) takeAll(match func(*T) bool) (taken []*T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drains++
	t.eachSlot(func(s *Slot[T]) {
		if e := s.value.Load(); e == t.none || match != nil && !match(e) {
			return
		}
		if e := s.value.Swap(t.none); e != t.none {
			taken = append(taken, e)
		}
	})
	return taken
}

func (t *Table[T]) drained() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drains--
}

// Each calls f for each value. If slots are locks, it holds all of them. Otherwise holders may
// write to their values: f must use atomic loads, and gets no consistent snapshot. Drain takes
// no value meanwhile.
func (t *Table[T]) Each(f func(*T)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all(func() {
		t.eachSlot(func(s *Slot[T]) {
			if e := s.value.Load(); e != t.none {
				f(e)
			}
		})
	})
}

// Any reports whether a value matches, or whether there is any if match is nil. It waits for no
// holder, so match must use atomic loads.
func (t *Table[T]) Any(match func(*T) bool) (found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.eachSlot(func(s *Slot[T]) {
		e := s.value.Load()
		found = found || e != t.none && (match == nil || match(e))
	})
	return found
}

// Clear empties all slots. No goroutine may hold a slot meanwhile.
func (t *Table[T]) Clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.eachSlot(func(s *Slot[T]) { s.value.Store(t.none) })
}

func (t *Table[T]) eachSlot(f func(*Slot[T])) {
	for i := range t.Len() {
		f(t.At(i))
	}
}
