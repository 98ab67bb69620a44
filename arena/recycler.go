// Recycler: a pool of idle arenas.
//
//	Get --> in use --> Put --> idle --> Get
//	                            |
//	                            +-- beyond MaxBytes, or idle for two ticks --> closed
//
// Idle arenas are a stack: the most recently used are reused first, and the others expire. While
// there are idle arenas a tick is scheduled. A timer runs it, or a Put that finds it overdue.

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

	// One Put in putsPerLook checks whether the tick is overdue. Reading the clock takes as long
	// as the rest of a Get and a Put.
	putsPerLook = 64

	// maxLook is the most idle arenas that a Get searches, under the lock.
	maxLook = 64
)

// RecyclerOptions sets up a [Recycler]; nil means all defaults.
type RecyclerOptions struct {
	// Arena sets up the Recycler's arenas.
	Arena *Options

	// MaxBytes bounds the memory of all idle arenas together, in bytes. 0 means
	// 64 MiB; a negative value panics.
	MaxBytes int

	// MaxArenaBytes bounds the memory of one idle arena, in bytes: Put trims an
	// arena to it. 0 means a quarter of MaxBytes; a negative value panics.
	MaxArenaBytes int

	// Decay is the least time that an arena stays idle before it is closed; the most is twice
	// that. 0 means one second; negative means until Close. Without a timer, see [NewRecycler],
	// an expired arena stays until the next Put.
	Decay time.Duration
}

// Recycler keeps idle arenas, with their memory, for reuse. It is safe for concurrent use if the
// parent is. An arena belongs to the caller of Get until Put. [NewRecycler] makes one; Get of the
// zero Recycler panics.
type Recycler struct {
	options  RecyclerOptions // with the defaults filled in
	confined bool            // the parent belongs to one goroutine, so there is no timer

	// mu guards the fields below, except ending, and the state of idle arenas.
	mu       sync.Mutex
	parent   freehold.Allocator // nil once closed
	stack    []idleArena        // the last put at the end
	reserved int                // bytes in the arenas of stack; reserved <= options.MaxBytes
	ticks    int64
	puts     uint
	due      time.Time // the wall-clock time of the next tick; zero if none is scheduled
	closed   bool

	// ending is held while a tick closes arenas. Close waits for it, since the
	// parent may be closed next. It is taken before mu.
	ending sync.Mutex
}

// An idleArena is reset, trimmed, and unowned.
type idleArena struct {
	arena *Arena
	since int64 // ticks when it was put
}

// NewRecycler returns an empty Recycler of arenas over parent, which must outlive
// it. It panics if parent is nil. Close returns the memory of all idle arenas.
//
// A timer closes arenas that have decayed, on a goroutine of its own. So the parent must be safe
// for concurrent use, unless Decay is negative. An [Arena] as the parent belongs to one goroutine:
// then there is no timer.
func NewRecycler(parent freehold.Allocator, o *RecyclerOptions) *Recycler {
	const call = "arena.NewRecycler"
	arg.NotNil(call, "parent", parent)
	if o == nil {
		o = &RecyclerOptions{}
	}
	r := &Recycler{parent: parent, options: *o}
	_, r.confined = parent.(*Arena)
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

// Get returns an empty arena with startBytes reserved in one chunk, as by [Arena.Reserve]. The
// caller owns it until Put or its Close. Get looks at the 64 idle arenas that were put last. It
// returns the newest one that has startBytes of memory, or else the newest one. If no arena is idle
// it makes one. The error is the parent's, or says that the arena's limit would be exceeded; with
// startBytes 0 there is none. It panics if startBytes is negative, and after Close.
func (r *Recycler) Get(startBytes int) (*Arena, error) {
	arg.AtLeast("arena.Recycler.Get", "startBytes", startBytes, 0)
	a := r.pop(startBytes)
	if err := a.Reserve(startBytes); err != nil {
		r.Put(a)
		return nil, err
	}
	return a, nil
}

// pop removes an arena from the stack, or makes one.
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
	for i > max(0, last-maxLook+1) && r.stack[i].arena.reserved < startBytes {
		i--
	}
	if r.stack[i].arena.reserved < startBytes {
		i = last
	}
	a := r.stack[i].arena
	r.stack = slices.Delete(r.stack, i, i+1)
	r.reserved -= a.reserved
	a.state = open
	a.put.Store(false)
	return a
}

// Put resets a, which Get returned, and keeps it for a later Get. To stay within MaxBytes it closes
// the arenas that have been idle longest, or a itself if it alone exceeds MaxBytes. The caller must
// not use a or its blocks afterwards; most uses of an idle arena panic. Put panics if a is nil, did
// not come from this Recycler or is idle already. Of two concurrent Puts of one arena, one panics.
// For a closed arena Put is a no-op.
func (r *Recycler) Put(a *Arena) {
	if a == nil {
		arg.Panicf("arena.Recycler.Put", "a is nil")
	}
	if a.keeper != r {
		arg.Panicf("arena.Recycler.Put", "the arena did not come from this Recycler")
	}
	if a.state == closed {
		return
	}
	a.mustBeOpen("arena.Recycler.Put")
	if !a.put.CompareAndSwap(false, true) { // another goroutine puts it concurrently
		refusePut("arena.Recycler.Put")
	}
	a.Reset()
	a.trim(r.options.MaxArenaBytes)
	for _, old := range r.push(a) {
		old.close()
	}
}

// push pushes a onto the stack and returns the arenas to close in exchange.
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

// wake schedules a tick. mu is held.
//
// Each tick has its own timer, which is never reset or stopped: outside of its testing/synctest
// bubble a timer allows neither. Such a timer does not fire once the bubble has ended. The bubble's
// clock is in the year 2000, so a Put outside finds the tick overdue.
func (r *Recycler) wake(now time.Time) {
	due := now.Add(r.options.Decay)
	r.due = due
	if !r.confined {
		time.AfterFunc(r.options.Decay, func() { r.tick(due) })
	}
}

// takeOut prepares the arena at an index of the stack for closing. The caller
// removes its entry.
func (r *Recycler) takeOut(i int) *Arena {
	a := r.stack[i].arena
	r.reserved -= a.reserved
	a.state = open
	return a
}

// tick closes the arenas that were idle before the last tick. It is a no-op if the tick due at that
// time has already run, or the Recycler is closed.
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

// expire removes the arenas that were idle for a whole period from the stack. It
// starts the next period if any arena is left. Missed ticks count too. mu is
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

// Close closes the idle arenas. Arenas in use remain usable, and Put closes them. A later Get
// panics; a second Close is a no-op. Close the Recycler and the arenas in use before their parent:
// if the parent is a closed [freehold.Heap], Close panics, and so may the Recycler's timer.
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

// RecyclerStats is a snapshot of a [Recycler]'s idle arenas. Arenas in use do not
// count.
type RecyclerStats struct {
	Idle     int // arenas
	Reserved int // bytes in their chunks
	MaxBytes int // the limit on Reserved
}

// Stats returns the figures of the idle arenas.
func (r *Recycler) Stats() RecyclerStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return RecyclerStats{Idle: len(r.stack), Reserved: r.reserved, MaxBytes: r.options.MaxBytes}
}
