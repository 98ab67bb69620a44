// Recycler: arenas between two uses.
//
//	Get --> in use --> Put --> idle --> Get
//	                            |
//	                            +-- beyond MaxBytes, or idle for two ticks --> closed
//
// Idle arenas are a stack, so that those that were used last are used next and
// the others age. A tick is due while there are any, and not otherwise. A timer
// does it, or a Put that finds it overdue.

package arena

import (
	"slices"
	"sync"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
)

const (
	defaultIdleBytes = 64 << 20
	defaultDecay     = time.Second

	// putsPerLook is how many Puts there are to one that looks whether the tick
	// is overdue. The clock takes as long as the rest of a Get and a Put.
	putsPerLook = 64
)

// RecyclerOptions sets up a [Recycler]; nil means all defaults.
type RecyclerOptions struct {
	// Arena is the options of its arenas.
	Arena *Options

	// MaxBytes bounds the memory that idle arenas hold together, in bytes.
	// 0 means 64 MiB; negative is a panic.
	MaxBytes int

	// MaxArenaBytes bounds what one idle arena holds, in bytes: Put trims it to
	// that. 0 means a quarter of MaxBytes; negative is a panic.
	MaxArenaBytes int

	// Decay is how long an arena that nobody gets stays, at least; it stays no
	// longer than twice that. 0 means one second; negative means until Close.
	// Without a timer, see [NewRecycler], it stays until the next Put after that.
	Decay time.Duration
}

// Recycler keeps arenas with their memory from one use to the next. It is safe
// for concurrent use if the parent is; an arena is its user's alone from Get to
// Put. [NewRecycler] makes one; Get of the zero Recycler panics.
type Recycler struct {
	options  RecyclerOptions // with the defaults filled in
	confined bool            // the parent belongs to one goroutine: there is no timer

	// mu guards what follows, and the state of idle arenas.
	mu       sync.Mutex
	parent   freehold.Allocator // nil once closed
	stack    []idleArena        // the one that was put last at the end
	reserved int                // bytes that the arenas in stack hold; reserved <= options.MaxBytes
	ticks    int64
	puts     uint
	due      time.Time // when the next tick is due, by the wall clock; zero if none is
	closed   bool

	// ending is held while a tick closes arenas: Close waits for that, for the
	// parent may be closed next. It is taken before mu.
	ending sync.Mutex
}

// An idleArena is reset, trimmed, and nobody's.
type idleArena struct {
	arena *Arena
	since int64 // ticks when it was put
}

// NewRecycler returns an empty Recycler of arenas over parent, which must outlive
// it; nil is a panic. Close gives all memory of idle arenas back.
//
// A timer gives back the memory of those that decay, on a goroutine of its own.
// An [Arena] or a [freehold.Cache] as the parent belongs to one goroutine, so
// there is no timer then. Any other parent must be safe for concurrent use
// unless Decay is negative.
func NewRecycler(parent freehold.Allocator, o *RecyclerOptions) *Recycler {
	const call = "arena.NewRecycler"
	arg.NotNil(call, "parent", parent)
	if o == nil {
		o = &RecyclerOptions{}
	}
	r := &Recycler{parent: parent, options: *o}
	switch parent.(type) {
	case *Arena, *freehold.Cache:
		r.confined = true
	}
	d := &r.options
	arenaOptions := d.Arena.withDefaults(call)
	d.Arena = &arenaOptions
	arg.AtLeast(call, "RecyclerOptions.MaxBytes", d.MaxBytes, 0)
	arg.AtLeast(call, "RecyclerOptions.MaxArenaBytes", d.MaxArenaBytes, 0)
	if d.MaxBytes == 0 {
		d.MaxBytes = defaultIdleBytes
	}
	if d.MaxArenaBytes == 0 {
		d.MaxArenaBytes = d.MaxBytes / 4
	}
	if d.Decay == 0 {
		d.Decay = defaultDecay
	}
	return r
}

// Get returns an empty arena, the caller's until Put or its own Close, with
// startBytes reserved in one chunk: [Arena.Reserve] of that. It is one that was
// put if there is any, the last one that holds as much before others, or else a
// new one. The error is the parent's, or says that the limit of the arena would
// be passed; with startBytes of 0 there is none. Negative startBytes are a
// panic, and so is a closed Recycler.
func (r *Recycler) Get(startBytes int) (*Arena, error) {
	arg.AtLeast("arena.Recycler.Get", "startBytes", startBytes, 0)
	a := r.pop(startBytes)
	if err := a.Reserve(startBytes); err != nil {
		r.Put(a)
		return nil, err
	}
	return a, nil
}

// pop takes an arena from the stack, or makes one.
func (r *Recycler) pop(startBytes int) *Arena {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.options.Arena == nil:
		arg.Panicf("arena.Recycler.Get", "zero value: arena.NewRecycler makes a Recycler")
	case r.closed:
		arg.Panicf("arena.Recycler.Get", "the Recycler is closed")
	}
	last := len(r.stack) - 1
	if last < 0 {
		a := newArena(r.parent, *r.options.Arena)
		a.keeper = r
		return a
	}
	i := last
	for i > 0 && r.stack[i].arena.reserved < startBytes {
		i--
	}
	if r.stack[i].arena.reserved < startBytes {
		i = last
	}
	a := r.stack[i].arena
	r.stack = slices.Delete(r.stack, i, i+1)
	r.reserved -= a.reserved
	a.state = open
	return a
}

// Put resets a, which Get returned, and keeps it for a later Get, or closes it
// if it holds too much; the arenas that were put longest ago give way first.
// Nothing may use a after it, nor any block of it; as long as a is idle, most
// uses of it panic. It panics if a did not come from this Recycler, or was put
// already. A closed arena is accepted and nothing happens.
//
// An arena in a [Registry] leaves it.
func (r *Recycler) Put(a *Arena) {
	if a.keeper != r {
		arg.Panicf("arena.Recycler.Put", "the arena did not come from this Recycler")
	}
	if a.state == closed {
		return
	}
	a.mustBeOpen("arena.Recycler.Put")
	a.leaveRegistry()
	a.Reset()
	a.trim(r.options.MaxArenaBytes)
	for _, old := range r.push(a) {
		old.close()
	}
}

// push puts a onto the stack and returns what is to be closed for it.
func (r *Recycler) push(a *Arena) (excess []*Arena) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || a.reserved > r.options.MaxBytes {
		return []*Arena{a}
	}
	r.puts++
	if r.options.Decay > 0 && (r.due.IsZero() || r.confined || r.puts%putsPerLook == 0) {
		now := time.Now().Round(0)
		if !r.due.IsZero() && !now.Before(r.due) {
			excess = r.expire(now)
		}
		if r.due.IsZero() {
			r.wake(now)
		}
	}
	n := 0
	for r.reserved+a.reserved > r.options.MaxBytes {
		excess = append(excess, r.takeOut(n))
		n++
	}
	r.stack = append(slices.Delete(r.stack, 0, n), idleArena{a, r.ticks})
	r.reserved += a.reserved
	a.state = idle
	return excess
}

// wake makes a tick due. mu is held.
//
// Each tick has a timer of its own, which is never reset or stopped: a timer
// that was made in a testing/synctest bubble allows neither outside of it. Once
// the bubble has ended, such a timer does not fire. Its time is in the year 2000,
// so a Put outside finds the tick overdue, when it looks.
func (r *Recycler) wake(now time.Time) {
	due := now.Add(r.options.Decay)
	r.due = due
	if !r.confined {
		time.AfterFunc(r.options.Decay, func() { r.tick(due) })
	}
}

// takeOut readies the arena at an index of the stack for closing. It leaves
// its entry to the caller.
func (r *Recycler) takeOut(i int) *Arena {
	a := r.stack[i].arena
	r.reserved -= a.reserved
	a.state = open
	return a
}

// tick closes the arenas that were idle before the last tick, unless the tick
// that was due then has been done, or the Recycler is closed.
func (r *Recycler) tick(due time.Time) {
	r.ending.Lock()
	defer r.ending.Unlock()
	for _, a := range r.expireAt(due) {
		a.close()
	}
}

func (r *Recycler) expireAt(due time.Time) []*Arena {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.due != due {
		return nil
	}
	return r.expire(time.Now().Round(0))
}

// expire takes what has been idle for a whole period from the stack, and starts
// the next period if anything is left. Ticks that nobody did count too. mu is
// held.
func (r *Recycler) expire(now time.Time) (excess []*Arena) {
	last := r.ticks + int64(now.Sub(r.due)/r.options.Decay)
	n := 0
	for n < len(r.stack) && r.stack[n].since < last { // oldest first
		excess = append(excess, r.takeOut(n))
		n++
	}
	r.stack = slices.Delete(r.stack, 0, n)
	r.ticks = last + 1
	r.due = time.Time{}
	if len(r.stack) > 0 {
		r.wake(now)
	}
	return excess
}

// Close closes the idle arenas. Those in use go on, and are closed when they
// are put. A later Get panics; a second Close does nothing. The Recycler and the
// arenas in use are closed before their parent: Close after that of a
// [freehold.Heap] panics, and so may the Recycler's timer.
func (r *Recycler) Close() {
	r.ending.Lock()
	defer r.ending.Unlock()
	for _, a := range r.end() {
		a.close()
	}
}

func (r *Recycler) end() (excess []*Arena) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed, r.parent, r.due = true, nil, time.Time{}
	for i := range r.stack {
		excess = append(excess, r.takeOut(i))
	}
	r.stack = nil
	return excess
}

// RecyclerStats is a snapshot of what a [Recycler] keeps. Arenas in use are not
// part of it.
type RecyclerStats struct {
	Idle     int // arenas
	Reserved int // bytes that they hold
	MaxBytes int // the limit on Reserved
}

// Stats returns the figures of the idle arenas.
func (r *Recycler) Stats() RecyclerStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return RecyclerStats{Idle: len(r.stack), Reserved: r.reserved, MaxBytes: r.options.MaxBytes}
}
