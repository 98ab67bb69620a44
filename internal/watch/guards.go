// Guard runs: blocks that end at inaccessible memory.
//
//	run   | inaccessible | fill | block | fill | inaccessible |
//	                     |<- system pages ---->|<--- a page -->|
//
// A guarded block ends at an inaccessible page, or in front of it by less than its alignment. The
// rest of its pages is filled, and checked at Free. A freed block's pages become inaccessible too.
// Its run waits in quarantine. When the quarantine is full, the run that has waited longest is used
// again. So an access to freed memory or beyond the end faults.
//
//	carve --> live --Free--> quarantine --> idle --> live
//
// The lengths of runs are powers of two. Runs come from segments with nothing else in them, since a
// guard in ordinary memory would split a huge page. A segment is in one of two states:
//
//   - All of it is accessible, except guards that the kernel knows apart from mappings (Linux
//     6.13). A guard is lifted while a block needs the page.
//   - None of it is accessible, except the pages of live blocks. This works on all systems, but
//     makes two mappings of each live block, so the number of live blocks is bounded.
//
// The memory of live blocks counts as the memory of any run does. Free runs have no memory, and
// count with their spans only.

package watch

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/guardlog"
	"github.com/freehold-go/freehold/internal/lockrank"
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/poison"
	"github.com/freehold-go/freehold/internal/vm"
)

const (
	maxGuarded  = 1 << 20 // larger blocks are not guarded
	guardOrders = 9       // run lengths: a page and twice that up to half a segment, or fewer

	// maxMappedGuards bounds the guards made of mappings, in all heaps. Linux allows 65,530
	// mappings, and the Go runtime dies near the end of them.
	maxMappedGuards = 8 << 10
)

// quarantineMax bounds the guarded blocks of a heap that are in quarantine: by blocks, and by
// bytes of addresses.
var quarantineMax = struct {
	blocks int
	bytes  uintptr
}{16 << 10, 1 << (26 + 4*(^uintptr(0)>>63))}

// mappedGuards counts the live blocks whose guards are mappings.
var mappedGuards atomic.Int64

// run is a guard run: the fields that this package adds to its span. Size is the block's. The block
// is live, or the last one that was.
type run struct {
	pages.Span
	block  uintptr // its address
	live   bool
	record guardlog.ID
}

const _ = pages.SpanBytes - unsafe.Sizeof(run{}) // a span has room for it

func runOf(s *pages.Span) *run { return (*run)(unsafe.Pointer(s)) }

// runAt returns the guard run that has addr, or nil.
func runAt(addr uintptr) *run {
	if s := pages.SpanAt(addr); s != nil && s.Kind == pages.GuardRun {
		return runOf(s)
	}
	return nil
}

// guards are the guard runs of a heap. mu guards it and their spans.
type guards struct {
	skipped atomic.Uint64 // blocks that should have been guarded and were not

	mu         lockrank.Mutex[lockrank.Guards]
	segments   []uintptr
	uncarved   pages.Range // of the newest segment
	mapped     bool        // in the newest segment, guards are made of mappings
	idle       [guardOrders]pages.List
	quarantine pages.List
	waiting    guardCount // in quarantine, with the bytes of the runs
	live       guardCount
	large      guardCount // part of live
	traffic    pages.Traffic
}

// guardCount counts blocks and bytes.
type guardCount struct{ Blocks, Bytes int }

func (c *guardCount) add(blocks int, bytes uintptr) {
	c.Blocks += blocks
	c.Bytes += blocks * int(bytes)
}

// guardUnit is the length of the shortest run.
func guardUnit() uintptr { return max(pages.PageBytes, vm.PageBytes()) }

// at returns the live block of s if it begins at addr, else nil.
func (g *guards) at(s *run, addr uintptr) []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !s.live || s.block != addr {
		return nil
	}
	return block(addr, s.Size)
}

// isLive reports whether b is exactly the live block of s. mu is held.
func (s *run) isLive(b []byte) bool {
	return s.live && s.block == addrOf(b) && s.Size == uintptr(len(b))
}

// edge returns the end of the pages that a block may use.
func (s *run) edge() uintptr { return s.End() - vm.PageBytes() }

// inUse returns the system pages of a run that its block takes.
func (s *run) inUse() pages.Range {
	from := s.block &^ (vm.PageBytes() - 1)
	return pages.Range{Base: from, Size: s.edge() - from}
}

// slack returns the rest of these pages in front of the block and behind it.
func (s *run) slack() [2]pages.Range {
	use, end := s.inUse(), s.block+s.Size
	return [2]pages.Range{{Base: use.Base, Size: s.block - use.Base}, {Base: end, Size: s.edge() - end}}
}

// guard returns a guarded block, or nil if there is none.
func (h *Heap) guard(size, align int) []byte {
	var b []byte
	if settings.budget.take() {
		b = h.newGuarded(uintptr(size), uintptr(align))
	}
	if b == nil {
		h.guards.skipped.Add(1)
	}
	return b
}

// Guarded returns a guarded block of size bytes, whatever the rate, or nil if there is none.
func (h *Heap) Guarded(size int) []byte { return h.guard(size, 1) }

// newGuarded returns a guarded block, which reads zero. It returns nil if the size or the alignment
// is too large, or if there is no memory.
func (h *Heap) newGuarded(size, align uintptr) []byte {
	page := vm.PageBytes()
	if h.pages.WholePages || size > maxGuarded || align > page {
		return nil
	}
	units := (vm.RoundUp(size, page) + page + guardUnit() - 1) / guardUnit()
	order := bits.Len(uint(units - 1))
	g := &h.guards
	g.mu.Lock()
	defer g.mu.Unlock()
	s := h.takeGuardRun(order)
	if s == nil {
		return nil
	}
	s.block, s.Size = (s.edge()-size)&^(align-1), size
	if !h.openGuarded(s) {
		g.idle[order].Push(&s.Span)
		return nil
	}
	s.fill()
	s.live = true
	h.note(1, int(size))
	g.traffic.Allocs++
	s.record.Allocated(s.block, size, h.pages.Name)
	return block(s.block, size)
}

// note counts a live block of size bytes, or with -1 that it is gone. mu is held.
func (h *Heap) note(blocks, size int) {
	bytes, small := h.engine.GoodSize(size)
	h.guards.live.add(blocks, uintptr(bytes))
	if !small {
		h.guards.large.add(blocks, uintptr(bytes))
	}
}

// takeGuardRun returns an idle run, or a new one. Without either it empties the quarantine, the
// oldest first, until a run of 1<<order units is idle. mu is held.
func (h *Heap) takeGuardRun(order int) *run {
	g := &h.guards
	if g.idle[order].Head == 0 && !h.carveGuardRun(order) {
		for g.quarantine.Head != 0 && g.idle[order].Head == 0 {
			g.release()
		}
	}
	s := runOf(pages.SpanPtr(g.idle[order].Head))
	if s != nil {
		g.idle[order].Remove(&s.Span)
	}
	return s
}

// release makes the run idle that has waited longest in quarantine. mu is held.
func (g *guards) release() {
	s := runOf(pages.SpanPtr(g.quarantine.Head))
	g.quarantine.Remove(&s.Span)
	g.waiting.add(-1, s.Bytes())
	g.idle[orderOf(s)].PushBack(&s.Span)
}

func orderOf(s *run) int { return bits.TrailingZeros(uint(s.Bytes() / guardUnit())) }

// openGuarded makes the pages of a run's block accessible, and charges for them. mu is held.
func (h *Heap) openGuarded(s *run) bool {
	use := s.inUse()
	p := h.pages
	if !p.OpenPages(use) {
		return false
	}
	var err error
	if s.Separate != 0 {
		if mappedGuards.Add(1) <= maxMappedGuards {
			err = vm.Commit(use.Base, use.Size)
		} else {
			err = vm.ErrNoMemory
		}
		if err != nil {
			mappedGuards.Add(-1)
		}
	} else {
		err = vm.Advise(use.Base, use.Size, vm.Unguard)
	}
	if err != nil {
		p.ClosePages(use)
	}
	return err == nil
}

// freeGuarded frees b if it is exactly the live block of the guard run s, in the name of call.
// It panics if not, and if the fill around the block was written.
func (h *Heap) freeGuarded(call string, s *run, b []byte) {
	switch live, written := h.endGuarded(s, b); {
	case !live:
		h.engine.Misused(call, b)
	case written != 0:
		known := s.record.Block()
		arg.Panicf(call, "%#x on heap %q: the bytes around the block were written: %s\n%s",
			s.block, h.pages.Name, known.Describe(written), known.Stacks())
	}
}

// endGuarded is freeGuarded without panics. If the fill was written it returns an address there,
// and the block stays live.
func (h *Heap) endGuarded(s *run, b []byte) (live bool, written uintptr) {
	g := &h.guards
	g.mu.Lock()
	defer g.mu.Unlock()
	if !s.isLive(b) {
		return false, 0
	}
	if written = s.written(); written != 0 {
		s.fill() // so that the mistake is reported once
		return true, written
	}
	s.live = false
	h.note(-1, len(b))
	g.traffic.Frees++
	h.endSample(b)
	s.record.Freed()
	if !h.closeGuarded(s) {
		return true, 0 // the run is not used again
	}
	g.quarantine.PushBack(&s.Span)
	g.waiting.add(1, s.Bytes())
	for g.waiting.Blocks > h.maxQuarantined() || g.waiting.Bytes > int(quarantineMax.bytes) {
		g.release()
	}
	return true, 0
}

// maxQuarantined returns the most blocks that the quarantine may have. Under a limit their spans
// take a small part of it.
func (h *Heap) maxQuarantined() int {
	limit := h.pages.Limit()
	if limit == 0 {
		return quarantineMax.blocks
	}
	return min(quarantineMax.blocks, int(limit/(128*pages.SpanBytes)))
}

// closeGuarded makes the pages of a freed block inaccessible. It reports false if the
// system refuses. mu is held.
func (h *Heap) closeGuarded(s *run) bool {
	use := s.inUse()
	if s.Separate != 0 {
		mappedGuards.Add(-1)
		if vm.Revoke(use.Base, use.Size) != nil {
			return false
		}
	} else if vm.Advise(use.Base, use.Size, vm.Guard) != nil {
		// The kernel refuses guards in locked memory, for one.
		if vm.Revoke(s.Base, s.Bytes()) != nil {
			return false
		}
		s.Separate = 1
	}
	h.pages.ClosePages(use)
	return true
}

// written returns the address nearest to the block at which the fill was written, or 0. mu
// is held.
func (s *run) written() uintptr {
	front, back := s.slack()[0], s.slack()[1]
	if i := poison.Other(block(back.Base, back.Size), poison.Fill); i >= 0 {
		return back.Base + uintptr(i)
	}
	b := block(front.Base, front.Size)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] != poison.Fill {
			return front.Base + uintptr(i)
		}
	}
	return 0
}

// fill fills the rest of the block's pages. mu is held.
func (s *run) fill() {
	for _, slack := range s.slack() {
		poison.FillBytes(block(slack.Base, slack.Size), poison.Fill)
	}
}

// Describe returns the mistake about b, which points into a run and is not a live block.
func (h *Heap) Describe(b []byte) string {
	g := &h.guards
	g.mu.Lock()
	defer g.mu.Unlock()
	addr := addrOf(b)
	s := runAt(addr)
	known := s.record.Block()
	stacks := ""
	if known.State != 0 {
		stacks = "\n" + known.Stacks()
	}
	switch {
	case !s.live && known.State == guardlog.Freed && known.Addr == addr:
		return "the block is free; it was freed before (double free)" + stacks
	case !s.live:
		return "the block is free; it was freed before (double free), or never allocated" + stacks
	case addr < s.block || addr >= s.block+s.Size:
		return fmt.Sprintf("it is not in a block, but next to one of %s%s", arg.Bytes(int(s.Size)), stacks)
	case addr != s.block:
		return fmt.Sprintf("it points %s into a block of %s%s", arg.Bytes(int(addr-s.block)), arg.Bytes(int(s.Size)), stacks)
	}
	return fmt.Sprintf("it has %s, the block %d; a block is freed whole%s", arg.Bytes(len(b)), s.Size, stacks)
}

// close forgets all runs. The page heap returns their segments to the system, and accesses fault.
func (g *guards) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.eachRun(func(s *run) {
		if s.Separate != 0 && s.live {
			mappedGuards.Add(-1)
		}
		s.record.Closed()
	})
	g.segments, g.uncarved, g.quarantine, g.idle = nil, pages.Range{}, pages.List{}, [guardOrders]pages.List{}
	g.waiting, g.live, g.large = guardCount{}, guardCount{}, guardCount{}
}

// Uncarved returns the addresses of h's guard segments that are in no run yet.
func (h *Heap) Uncarved() pages.Range {
	h.guards.mu.Lock()
	defer h.guards.mu.Unlock()
	return h.guards.uncarved
}

// EachGuarded calls visit with each live guarded block. None is freed meanwhile.
func (h *Heap) EachGuarded(visit func(Part)) {
	h.guards.mu.Lock()
	defer h.guards.mu.Unlock()
	h.guards.eachRun(func(s *run) {
		if s.live {
			visit(Part{Block: s.block, Size: s.Size, To: s.Size, Watched: true, Stack: stackOf(s.block)})
		}
	})
}

// eachRun calls f with all runs. mu is held.
func (g *guards) eachRun(f func(s *run)) {
	for _, segment := range g.segments {
		for at := segment; at < segment+pages.SegmentBytes; {
			s := runAt(at)
			if s == nil {
				break // the rest is uncarved
			}
			at = s.End()
			f(s)
		}
	}
}
