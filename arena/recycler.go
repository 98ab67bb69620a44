// Recycler: arenas between two uses.
//
//	Get --> in use --> Put --> idle --> Get
//	                            |
//	                            +-- beyond MaxBytes, or idle for two ticks --> closed
//
// Idle arenas are a stack, so that those that were used last are used next and
// the others age. A timer ticks while there are any, and not otherwise.

package arena

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/freehold-go/freehold"
)

const (
	defaultIdleBytes = 64 << 20
	defaultDecay     = time.Second
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
	Decay time.Duration
}

// Recycler keeps arenas with their memory from one use to the next. It is safe
// for concurrent use if the parent is; an arena is its user's alone from Get to
// Put.
type Recycler struct {
	parent  freehold.Allocator
	options RecyclerOptions // with the defaults filled in

	// mu guards what follows, and the state of idle arenas.
	mu     sync.Mutex
	stack  []idleArena // the one that was put last at the end
	bytes  int         // that the arenas in stack hold; bytes <= options.MaxBytes
	ticks  int
	timer  *time.Timer // nil before the first tick is due
	ticker bool        // a tick is due
	closed bool

	// ending is held while a tick closes arenas: Close waits for that, for the
	// parent may be closed next. It is taken before mu.
	ending sync.Mutex
}

// An idleArena is reset, trimmed, and nobody's.
type idleArena struct {
	arena *Arena
	since int // ticks when it was put
}

// NewRecycler returns an empty Recycler of arenas over parent. Close gives all
// memory of idle arenas back.
func NewRecycler(parent freehold.Allocator, o *RecyclerOptions) *Recycler {
	if o == nil {
		o = &RecyclerOptions{}
	}
	r := &Recycler{parent: parent, options: *o}
	d := &r.options
	arenaOptions := d.Arena.withDefaults()
	d.Arena = &arenaOptions
	if d.MaxBytes < 0 || d.MaxArenaBytes < 0 {
		panic(fmt.Sprintf("freehold: arena: a Recycler of %d bytes, and %d for an arena", d.MaxBytes, d.MaxArenaBytes))
	}
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
	if startBytes < 0 {
		panic(fmt.Sprintf("freehold: arena: Get with %d bytes", startBytes))
	}
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
	if r.closed {
		panic("freehold: arena: Get from a closed Recycler")
	}
	last := len(r.stack) - 1
	if last < 0 {
		a := New(r.parent, r.options.Arena)
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
	r.bytes -= a.reserved
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
		panic("freehold: arena: Put of an arena that did not come from this Recycler")
	}
	if a.state == closed {
		return
	}
	a.mustBeOpen("Put")
	if a.member != nil {
		a.member.end()
	}
	a.Reset()
	a.Trim(r.options.MaxArenaBytes)
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
	n := 0
	for r.bytes+a.reserved > r.options.MaxBytes {
		excess = append(excess, r.takeOut(n))
		n++
	}
	r.stack = append(slices.Delete(r.stack, 0, n), idleArena{a, r.ticks})
	r.bytes += a.reserved
	a.state = idle
	if !r.ticker && r.options.Decay > 0 {
		r.ticker = true
		if r.timer == nil {
			r.timer = time.AfterFunc(r.options.Decay, r.tick)
		} else {
			r.timer.Reset(r.options.Decay)
		}
	}
	return excess
}

// takeOut readies the arena at an index of the stack for closing. It leaves
// its entry to the caller.
func (r *Recycler) takeOut(i int) *Arena {
	a := r.stack[i].arena
	r.bytes -= a.reserved
	a.state = open
	return a
}

// tick closes the arenas that were idle before the last tick.
func (r *Recycler) tick() {
	r.ending.Lock()
	defer r.ending.Unlock()
	for _, a := range r.expire() {
		a.close()
	}
}

// expire takes what has been idle for a whole period from the stack, and starts
// the next period if anything is left.
func (r *Recycler) expire() (excess []*Arena) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for n < len(r.stack) && r.stack[n].since < r.ticks { // oldest first
		excess = append(excess, r.takeOut(n))
		n++
	}
	r.stack = slices.Delete(r.stack, 0, n)
	r.ticks++
	if r.ticker = len(r.stack) > 0; r.ticker {
		r.timer.Reset(r.options.Decay)
	}
	return excess
}

// Close closes the idle arenas. Those in use go on, and are closed when they
// are put. A later Get panics; a second Close does nothing.
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
	r.closed = true
	if r.timer != nil {
		r.timer.Stop()
	}
	for i := range r.stack {
		excess = append(excess, r.takeOut(i))
	}
	r.stack = nil
	return excess
}

// RecyclerStats is a snapshot of what a [Recycler] keeps.
type RecyclerStats struct {
	Arenas int // idle
	Bytes  int // that they hold
}

// Stats returns the figures of the idle arenas.
func (r *Recycler) Stats() RecyclerStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return RecyclerStats{Arenas: len(r.stack), Bytes: r.bytes}
}
