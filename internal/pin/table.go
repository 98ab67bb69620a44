// Table: what a package keeps for each processor.
//
//	                                 length slots, one for each processor
//	| the rest of O | Table | length |  0  |  1   | ... |  15 |  16  |  17 | ...
//	                                    e    none          e    none    e   entries, used by the holder of the slot alone
//	|<----------------------- O ----------------------------->|
//
// A table ends the object O that has it, with its first slots. On larger machines
// [New] allocates the others behind O. So an entry is at a constant offset from O,
// with no pointer to load, and assembly finds that of a first slot without length:
// a load more in each call would show in BenchmarkPair of package pool.
//
// An entry comes into an empty slot by Install, from anyone. It leaves by Take,
// of the slot's holder, or by Drain, from all slots.
//
// # Why nobody uses what Drain has taken
//
// A holder loads the entry of its slot after Enter and does not use it after
// Leave. Drain forbids new entries, swaps each entry for none, and Waits. In the
// order of these atomic operations, the load comes
//
//   - after the swap: it finds none, or an entry that was installed later. That
//     is another one, for nobody installs what he has not got.
//   - or before the swap: then Enter came before Wait, which returns after Leave.
//     All that the holder did with the entry happens before that.
//
// Where slots are locked, Wait is right because it takes each lock once. Where
// goroutines are pinned, it is because it stops the world: the runtime stops a
// processor only where its goroutine may be preempted, and it may not while
// it is pinned, whether it is asked by a flag that function prologues look at or
// by a signal. Stopping and starting the world also orders memory.
//
// Callers of Wait share stops. A Wait reads the count of begun stops, takes the
// lock that is held during a stop, and stops the world only if the count is
// still the same; the count grows before each stop, under the lock. If it has
// grown, a stop began after the reading, thus after the swap, and has ended, for
// the lock was free. That stop waited for the holder, as one by Wait itself does.
//
// Assembly and leaves are no different. Their stay begins when they load the processor's number
// and ends when they return or call or jump to another function. In between the goroutine stays
// on its processor (runtime.go says why), and a stop of the world, by Wait,
// ReadMemStats or the collector, waits for it. The collector does not look for
// pointers in their registers, and need not: the table keeps the entry
// alive, and after the swap Drain does. They store no Go pointer, so they
// owe the collector no write barrier.
//
// Take needs no Wait: its caller is the only one who may use the entry.

package pin

import (
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/lockrank"
)

// A Table has a slot for each processor, with an entry or empty. It is the last
// field of an object that [New] made, and Init makes it ready. In any other object
// it has no slots, and first is all nil. It must not be copied.
//
// A processor that came after New may be beyond the table, as the 1025th is: it has
// no slot, and its goroutines do without.
//
// mu is held while the function given to Install runs, and not while that of Drain does.
type Table[T any] struct {
	none *T // the entry of empty slots
	Holders

	mu     lockrank.Mutex[lockrank.Caches] // guards what follows, and the way of entries into slots
	drains int                             // under way
	joined map[*Slot[T]]struct{}

	_      [0]atomic.Uint64    // aligns length to 8 bytes on 386 too, so that no padding is behind first
	length uint64              // number of slots; fixed
	first  [firstSlots]Slot[T] // the other slots are behind it
}

// New returns a zero O that ends with a Table of a slot for each processor that there
// is.
//
// Precondition: nothing is behind the Table in O, no padding either. Each O asserts
// that by a constant.
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

// newWith returns a zero O with More behind it, an array of pointers, so that the
// collector finds the entries.
func newWith[O, More any]() *O {
	return &new(struct {
		object O
		more   More
	}).object
}

// A Slot has an entry, or is empty. It is part of a Table, or has joined one.
type Slot[T any] struct{ entry atomic.Pointer[T] }

// Entry returns the slot's entry. The caller holds the slot.
func (s *Slot[T]) Entry() *T { return s.entry.Load() }

// Init makes all slots empty. The entry of an empty slot is none, which nobody may
// write to.
func (t *Table[T]) Init(none *T) {
	t.none = none
	for i := range t.Len() {
		t.At(i).entry.Store(none)
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

// Slot returns the slot with the given number, nil beyond the table.
func (t *Table[T]) Slot(slot int) *Slot[T] {
	if t.Has(slot) {
		return t.At(slot)
	}
	return nil
}

// Entry returns the entry of a slot that the caller holds, none beyond the table.
func (t *Table[T]) Entry(slot int) *T {
	if t.Has(slot) {
		return t.EntryAt(slot)
	}
	return t.none
}

// EntryAt returns the entry of a slot that the table has and the caller holds. It is At and
// Entry in one, for leaves: each call that is inlined takes room on the stack with -N.
func (t *Table[T]) EntryAt(slot int) *T {
	return (*Slot[T])(unsafe.Add(unsafe.Pointer(&t.first), uintptr(slot)*unsafe.Sizeof(Slot[T]{}))).entry.Load()
}

// Install fills a slot with what create returns, and reports whether it did. It
// does nothing if s is nil or has an entry, if create returns nil, and during a
// Drain. The caller holds no slot.
func (t *Table[T]) Install(s *Slot[T], create func() *T) bool {
	if s == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.drains > 0 || s.entry.Load() != t.none {
		return false
	}
	e := create()
	if e == nil {
		return false
	}
	s.entry.Store(e)
	return true
}

// Take empties a slot that the caller holds and returns its entry, none if it has
// none.
func (t *Table[T]) Take(slot int) *T {
	if s := t.Slot(slot); s != nil {
		return s.entry.Swap(t.none)
	}
	return t.none
}

// Drain empties all slots whose entries match, every slot if match is nil, waits
// until nobody uses the entries any more, and calls f with them. Slots stay empty
// until f returns. The caller holds no slot. Holders may be at work while match
// looks at their entries. With pinned goroutines it stops the
// world, whether there are entries or not, unless it can share a stop.
func (t *Table[T]) Drain(match func(*T) bool, f func(taken []*T)) {
	t.drain(match, false, f)
}

// DrainPatiently is Drain that lets other goroutines run before it waits, so that
// drains of many tables at the same time share a stop of the world. On a busy
// machine it takes some milliseconds more.
func (t *Table[T]) DrainPatiently(match func(*T) bool, f func(taken []*T)) {
	t.drain(match, true, f)
}

func (t *Table[T]) drain(match func(*T) bool, patient bool, f func(taken []*T)) {
	taken := t.takeAll(match)
	defer t.drained()
	t.waitFor(patient)
	f(taken)
}

// takeAll are the first two steps of Drain.
func (t *Table[T]) takeAll(match func(*T) bool) (taken []*T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drains++
	t.eachSlot(func(s *Slot[T]) {
		if e := s.entry.Load(); e == t.none || match != nil && !match(e) {
			return
		}
		if e := s.entry.Swap(t.none); e != t.none {
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

// Each calls f for each entry. Where slots are locked, it holds all of them.
// Otherwise their holders may be at work: f reads what they write by atomic
// loads, and takes it for a snapshot. Drain takes no entry meanwhile.
func (t *Table[T]) Each(f func(*T)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all(func() {
		t.eachSlot(func(s *Slot[T]) {
			if e := s.entry.Load(); e != t.none {
				f(e)
			}
		})
	})
}

// Any reports whether an entry matches; whether there is one if match is nil. It
// waits for no holder: match, like that of Drain, reads what holders write by
// atomic loads.
func (t *Table[T]) Any(match func(*T) bool) (found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.eachSlot(func(s *Slot[T]) {
		e := s.entry.Load()
		found = found || e != t.none && (match == nil || match(e))
	})
	return found
}

// Clear empties all slots and forgets those that have joined. Nobody may hold a
// slot meanwhile.
func (t *Table[T]) Clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.eachSlot(func(s *Slot[T]) { s.entry.Store(t.none) })
	t.joined = nil
}

// Join adds a slot, which is empty then, that belongs to one goroutine at a time
// instead of a processor. Against Drain its user holds a slot of the table, any.
func (t *Table[T]) Join(s *Slot[T]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.entry.Store(t.none)
	if t.joined == nil {
		t.joined = map[*Slot[T]]struct{}{}
	}
	t.joined[s] = struct{}{}
}

// Part removes a slot that has joined and returns its entry, none if it has none.
// The caller is its user.
func (t *Table[T]) Part(s *Slot[T]) *T {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.joined, s)
	return s.entry.Swap(t.none)
}

// Joined returns how many slots have joined.
func (t *Table[T]) Joined() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.joined)
}

func (t *Table[T]) eachSlot(f func(*Slot[T])) {
	for i := range t.Len() {
		f(t.At(i))
	}
	for s := range t.joined {
		f(s)
	}
}
