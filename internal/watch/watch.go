// Watch: blocks with records of their own.
//
//	package heap                            this package
//	Alloc --the countdown ends--> Alloc ----choose--> sampled, with a red zone, at a guard
//	Free, Resize --the status is "watched"--> Free, Resize
//	   ^                                        |
//	   +------ Engine: blocks without a watch --+
//
//	block at a guard     ... | fill | block | fill | inaccessible page |
//	with a red zone      | block | red zone |
//	sampled              | block |
//
// A block is watched from its Alloc to its Free, and with a red zone to the end of its quarantine:
//
//	Alloc --> live --Free--> in quarantine --oldest--> the engine's Free
//	            |
//	            +--Free of a block that is only sampled--> the engine's Free

// Package watch keeps records of single blocks. From them come the profile and leaks, messages
// about writes behind blocks and after their Free, double frees with stacks, and blocks at
// inaccessible pages.
//
// It is below package heap, which serves most blocks without it. A heap counts down to the next
// block that may be watched, and passes that block to Alloc. The status of a watched block is
// neither a size nor "free", so the fast path of the heap's Free fails for it, and the slow path
// calls this package: other blocks pay nothing. This package calls the heap through Engine, and
// knows nothing of its classes and caches.
//
// The terms of this package:
//
//	watched     of a block: it has a record, or is guarded
//	record      its size, red zone, stacks and weight
//	event       a block at which the countdown ended: it may be watched
//	sampled     of a block: it represents others in the sums
//	sum         the blocks and bytes of one stack, heap and tag
//	weight      the number of blocks that a sample represents
//	red zone    bytes behind a block that hold the fill; Free finds a write there
//	fill        the bytes in memory that no user has
//	quarantine  freed blocks that are not reused yet, so that a write after Free is found. A heap
//	            has two: of blocks with red zones, and of guard runs, where accesses fault
//	guarded     of a block: it ends at an inaccessible page, and its pages are inaccessible
//	            from its Free on
//	run         a guard run: the pages of a guarded block
//
// A block has a red zone or a guard, never both. Either may be sampled. A sample ends with Free,
// not with the quarantine.
//
// # Locks
//
// settings.mu is held while the caches of all heaps are drained, so it is taken before any lock
// of a heap. The mu of a heap's guards is taken before table.mu and before the heap's Pages.
// table.mu is taken after all locks of a heap and its pages; only the locks of table.memory, a
// heap of pages of its own, are taken under it. The mu of the token bucket and the locks of
// stacks.Table are leaves.
package watch

import (
	"math"
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/asan"
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/stacks"
)

// Engine is a heap without the watch. Alloc, Free and Resize panic and fail as the heap's do.
type Engine interface {
	Alloc(size, align int, zero bool) ([]byte, error)
	Free(b []byte)
	Resize(call string, b []byte, size int) ([]byte, bool)

	// Mark sets the status of a live block to "watched", Unmark to its size. A guarded block
	// has no status.
	Mark(b []byte)
	Unmark(b []byte)

	// GoodSize returns the bytes that a block of size bytes takes, and whether it is small.
	GoodSize(size int) (bytes int, small bool)

	// Misused panics in the name of call and describes the mistake about b.
	Misused(call string, b []byte)
}

// Heap has the watched blocks of one heap.
type Heap struct {
	engine Engine
	pages  *pages.Heap
	label  atomic.Uint32 // of its stacks, 0 before the first
	guards guards
	live   list
	freed  list // in quarantine
	patrol cursor
	closed bool // no record is made any more; table.mu guards it
}

// Init makes h ready. It takes no memory.
func (h *Heap) Init(e Engine, p *pages.Heap) { h.engine, h.pages = e, p }

// Alloc watches the event b, which was just allocated with the alignment, zeroed or not, and
// returns it. Or it frees b and returns another block in its place.
func (h *Heap) Alloc(b []byte, align int, zero bool) ([]byte, error) {
	size := len(b)
	guarded, weight := choose(size)
	if guarded {
		if g := h.guard(size, align); g != nil {
			h.engine.Free(b)
			h.sample(g, weight)
			return g, nil
		}
	}
	if Zone() == 0 {
		h.sample(b, weight)
		return b, nil
	}
	if late := h.look(size); late != "" {
		h.engine.Free(b)
		panic(late)
	}
	var r *record
	locked(func() { r = newRecord() })
	if r == nil {
		permit(b)
		return b, nil
	}
	defer func() {
		if r != nil { // addZone has failed, or found a late write and panics
			locked(r.drop)
		}
	}()
	whole, err := h.addZone(b, align, zero)
	if err != nil {
		return nil, err
	}
	r.red, r.weight = RedZone, weight
	h.watch(r, whole[:size])
	r = nil
	return whole[:size:size], nil
}

// addZone returns a block with room for a red zone in place of b.
func (h *Heap) addZone(b []byte, align int, zero bool) ([]byte, error) {
	size := len(b) + RedZone
	if whole, ok := h.engine.Resize("Heap.Alloc", b, size); ok {
		return whole, nil
	}
	h.engine.Free(b)
	return h.engine.Alloc(size, align, zero)
}

// sample watches b, which has no red zone, as the sample of weight blocks, unless weight is 0.
func (h *Heap) sample(b []byte, weight float64) {
	if weight == 0 {
		return
	}
	alloc := h.capture(weight)
	table.mu.Lock()
	defer table.mu.Unlock()
	if r := newRecord(); r != nil {
		r.weight = weight
		h.begin(r, b, alloc)
	}
}

// watch makes r, whose red zone and weight are set, the record of the live block b.
func (h *Heap) watch(r *record, b []byte) {
	permit(b)
	forbid(block(addrOf(b)+uintptr(len(b)), uintptr(r.red)))
	alloc := h.capture(r.weight)
	table.mu.Lock()
	defer table.mu.Unlock()
	h.begin(r, b, alloc)
}

// capture returns the caller's stack. For a sample it is labelled with the heap.
func (h *Heap) capture(weight float64) stacks.ID {
	if weight > 0 {
		return table.stacks.Capture(h.labelled())
	}
	return table.stacks.Capture(0)
}

// begin is watch with mu held, and without the fill. It drops r if h is closed: b may be another
// heap's by now, and a record of it would stay.
func (h *Heap) begin(r *record, b []byte, alloc stacks.ID) {
	if h.closed {
		r.drop()
		return
	}
	r.addr, r.size, r.live, r.alloc, r.free = addrOf(b), uintptr(len(b)), true, alloc, stacks.Other
	r.begin()
	r.chain()
	h.live.push(r)
	h.engine.Mark(r.whole())
}

// Free frees the watched block that begins at b, or the guarded block whose run has b, in the
// name of call. s is the span at b. Free reports false if b is not watched, or only sampled: then
// the engine must free it.
func (h *Heap) Free(call string, s *pages.Span, b []byte) (done bool) {
	if s.Kind == pages.GuardRun {
		h.freeGuarded(call, runOf(s), b)
		return true
	}
	if h.endSample(b) {
		return false
	}
	r := h.take(call, b)
	if r != nil {
		h.quarantine(r)
	}
	return r != nil
}

// find is find of a block of h: nil if h is closed. mu is held.
func (h *Heap) find(addr uintptr) *record {
	if h.closed {
		return nil
	}
	return find(addr)
}

// endSample ends the watch of b if b is exactly a live block without a red zone.
func (h *Heap) endSample(b []byte) (ended bool) {
	table.mu.Lock()
	defer table.mu.Unlock()
	r := h.find(addrOf(b))
	if r == nil || !r.live || r.red > 0 || r.size != uintptr(len(b)) {
		return false
	}
	h.live.remove(r)
	h.engine.Unmark(b)
	r.forget()
	return true
}

// take makes the block b not live and returns its record, or nil unless b is exactly a watched
// block. It panics if b was freed before, and if its red zone was written.
func (h *Heap) take(call string, b []byte) *record {
	freed := stacks.Other
	if Zone() > 0 {
		freed = table.stacks.Capture(0)
	}
	table.mu.Lock()
	r := h.find(addrOf(b))
	if r == nil || r.live && r.size != uintptr(len(b)) {
		table.mu.Unlock()
		return nil
	}
	if !r.live {
		defer table.mu.Unlock()
		h.freedBefore(call, r)
	}
	r.live, r.free = false, freed
	h.live.remove(r)
	table.mu.Unlock()
	if i := written(r.zone()); i >= 0 {
		h.keep(r)
		panic(h.writtenBehind(r, i+1))
	}
	return r
}

// keep undoes take. If h was closed since, it forgets r.
func (h *Heap) keep(r *record) {
	table.mu.Lock()
	defer table.mu.Unlock()
	if h.closed {
		r.forget()
		return
	}
	r.live, r.free = true, stacks.Other
	h.live.push(r)
}

// unmark sets the status of the block of r, which take returned, to its size. If h was closed
// since, the block may be another heap's, and unmark does nothing. mu is held.
func (h *Heap) unmark(r *record) {
	if !h.closed {
		h.engine.Unmark(r.whole())
	}
}

// Resize resizes the watched block that begins at b. It counts as a Free and an Alloc, also in
// place: so the counts do not depend on the memory behind a block.
func (h *Heap) Resize(call string, b []byte, size int) ([]byte, bool) {
	if s := runAt(addrOf(b)); s != nil {
		if len(h.guards.at(s, addrOf(b))) != len(b) {
			h.engine.Misused(call, b)
		}
		if size != len(b) {
			return nil, false
		}
		h.endSample(b)
		h.sample(b, sampleAgain(size))
		return b, true
	}
	r := h.take(call, b)
	if r == nil {
		h.engine.Misused(call, b)
	}
	whole, ok := r.whole(), false
	locked(func() {
		h.unmark(r)
		r.unchain() // once the engine has freed it, the block may be another's
	})
	forsake(whole)
	if size <= math.MaxInt-int(r.red) {
		whole, ok = h.resizeTaken(call, r, size)
	}
	if !ok {
		permit(b)
		locked(func() {
			r.chain()
			if !h.closed {
				h.engine.Mark(r.whole())
			}
		})
		h.keep(r)
		return nil, false
	}
	locked(r.end)
	if r.weight = sampleAgain(size); r.red == 0 && r.weight == 0 {
		locked(r.drop)
	} else {
		h.watch(r, whole[:size])
	}
	return whole[:size:size], true
}

// resizeTaken is the engine's Resize of r's block, which is unmarked, and r is in no chain. It
// panics if another goroutine has freed the block meanwhile: the sample has ended then.
func (h *Heap) resizeTaken(call string, r *record, size int) (whole []byte, ok bool) {
	panics := true
	defer func() {
		if panics {
			locked(func() {
				r.end()
				r.drop()
			})
		}
	}()
	whole, ok = h.engine.Resize(call, r.whole(), size+int(r.red))
	panics = false
	return whole, ok
}

// Resized is called after the ordinary block b was resized, which counts as an Alloc.
func (h *Heap) Resized(b []byte) { h.sample(b, sampleAgain(len(b))) }

// Block returns the watched block that begins at addr, or the guarded block whose run has addr; nil
// if there is none. If the block was freed, it panics in the name of call.
func (h *Heap) Block(call string, addr uintptr) []byte {
	if s := runAt(addr); s != nil {
		return h.guards.at(s, addr)
	}
	table.mu.Lock()
	defer table.mu.Unlock()
	r := find(addr)
	if r == nil {
		return nil
	}
	if !r.live {
		h.freedBefore(call, r)
	}
	return r.user()
}

// Size returns the size of the watched block that begins at addr, 0 if there is none.
func (h *Heap) Size(addr uintptr) uintptr {
	table.mu.Lock()
	defer table.mu.Unlock()
	if r := find(addr); r != nil {
		return r.size
	}
	return 0
}

// stackOf returns the stack of the allocation of the watched block at addr, Other if it has no
// record.
func stackOf(addr uintptr) stacks.ID {
	table.mu.Lock()
	defer table.mu.Unlock()
	if r := find(addr); r != nil {
		return r.alloc
	}
	return stacks.Other
}

// Part is a part of a live block.
type Part struct {
	Block, Size uintptr
	From, To    uintptr   // offsets of the part
	Watched     bool      // the block has a record, or is guarded
	Stack       stacks.ID // of the allocation; Other unless there is a record
}

// Visit calls visit with a part of the watched block, without its red zone, if the block is live. A
// block with a red zone stays live meanwhile, and visit must not call this package.
func (h *Heap) Visit(p Part, visit func(Part)) {
	table.mu.Lock()
	r := find(p.Block)
	live := r != nil && r.live
	if live {
		p.Size, p.To = r.size, min(p.To, r.size)
		p.Watched, p.Stack = true, r.alloc
	}
	if live && r.red > 0 {
		defer table.mu.Unlock()
	} else {
		table.mu.Unlock()
	}
	if live {
		visit(p)
	}
}

// Figures are the guarded blocks of a heap, for its Stats.
type Figures struct {
	Guarded, Large guardCount // live; Large is part of Guarded
	Skipped        uint64     // blocks that should have been guarded and were not
	Traffic        pages.Traffic
}

// Figures returns a snapshot.
func (h *Heap) Figures() Figures {
	g := &h.guards
	g.mu.Lock()
	defer g.mu.Unlock()
	return Figures{g.live, g.large, g.skipped.Load(), g.traffic}
}

// Close forgets all blocks, which are about to be inaccessible. A call beside it makes no record
// after it. It returns the message of a panic
// for after Close of the heap, or "".
func (h *Heap) Close() (late string) {
	table.mu.Lock()
	h.closed = true
	h.freed.each(func(r *record) {
		if late == "" {
			late = h.writtenLate(r)
		}
	})
	for _, l := range []*list{&h.live, &h.freed} {
		l.each(func(r *record) {
			r.endByClose()
			l.remove(r)
			r.forget()
		})
	}
	h.patrol = cursor{}
	table.mu.Unlock()
	if asan.Enabled {
		for _, s := range h.pages.AllSegments() {
			permit(block(s.Base, s.Size))
		}
	}
	h.guards.close()
	return late
}
