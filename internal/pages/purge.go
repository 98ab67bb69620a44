// Purge: giving the memory of free pages back to the system.
//
// purge works down from the end of a run, a slice at a time. It holds mu while the system takes
// a slice back, and unlocks it after each. The run stays a free run: if it is allocated, cut or
// joined between two slices, purge goes on with another run. So a purge blocks no addresses, and
// an allocation waits for at most one slice.
//
// Long runs come first: they take the fewest system calls per page. The lowest pages of a run
// come last, since they are allocated first. A run that was purged to its beginning is marked
// purgeTried and moves to the end of its bin. Pages that the system refused, or that fill no
// whole unit, stay dirty. They are not tried again until the run changes or RetryPurge.

package pages

import (
	"time"

	"github.com/freehold-go/freehold/internal/vm"
)

// DefaultDecay is the time that a heap keeps unused memory.
const DefaultDecay = time.Second

// TicksPerDecay is the number of ticks of a heap's timer per decay.
const TicksPerDecay = 3

// slicePages is the most that one purge gives back without unlocking mu.
const slicePages = 512 << 10 / PageBytes

// onSlice, if set, is called after each slice, without mu. For tests.
var onSlice func(*Heap)

// Purge gives the memory of up to n free pages back to the system. Scavenging is held.
func (p *Heap) Purge(n uintptr) { p.purgeRuns(n, 1) }

// purgeRuns is Purge for runs with at least minDirty dirty pages. It returns the number of pages
// given back. Scavenging is held.
func (p *Heap) purgeRuns(n, minDirty uintptr) (purged uintptr) {
	p.mu.Lock()
	n = min(n, p.dirty)
	p.mu.Unlock()
	for n > 0 {
		tried, done, more := p.purgeRun(n, minDirty)
		if !more {
			break
		}
		n -= min(n, tried)
		purged += done
	}
	return purged
}

// dirtyRun returns a free run for purge with at least minDirty dirty pages, or nil. It comes
// from the bin of the longest such runs. mu is held.
func (p *Heap) dirtyRun(minDirty uintptr) *Span {
	for b := p.free.below(numBins); b >= bin(minDirty); b = p.free.below(b) {
		for at := p.free.lists[b].Head; at != 0; at = SpanPtr(at).Next {
			s := SpanPtr(at)
			if s.dirty == 0 || s.purgeTried {
				break // the rest of the bin is alike: see bins.insert
			}
			if s.dirty >= minDirty {
				return s
			}
		}
	}
	return nil
}

// purgeRun decommits up to n dirty pages of a run, from its end down. It works in whole units of
// the system's page, or of huge pages, so as not to split any. It returns the numbers of dirty
// pages that it tried and that the system took. more is false if there was no run.
func (p *Heap) purgeRun(n, minDirty uintptr) (tried, purged uintptr, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.dirtyRun(minDirty)
	if s == nil {
		return 0, 0, false
	}
	unit := max(vm.PageBytes(), PageBytes)
	if p.HugePages {
		unit = vm.HugePageBytes
	}
	r := Addresses.RegionOf(s.Base)
	base, at := s.Base, s.End()
	for at > base && tried < n {
		from, to := r.dirty.lastRun(r.pageIndex(base), r.pageIndex(at), min(slicePages, n-tried))
		at = r.Base + from*PageBytes
		// Whole units, with clean pages of the run that share one.
		low := max(vm.RoundUp(base, unit), at&^(unit-1))
		high := min(s.End()&^(unit-1), vm.RoundUp(r.Base+to*PageBytes, unit))
		if from == to || low >= high {
			continue
		}
		at = min(at, low)
		slice := r.dirty.Count(r.pageIndex(low), (high-low)/PageBytes)
		tried += slice
		if vm.Decommit(low, high-low) == nil {
			purged += slice
			r.dirty.ClearRange(r.pageIndex(low), (high-low)/PageBytes)
			p.purged(s, slice)
		}
		before := *s
		p.mu.Unlock()
		if onSlice != nil {
			onSlice(p)
		}
		p.mu.Lock()
		if *r.page(base) != s || s.Base != base || s.pages != before.pages || s.dirty != before.dirty || s.Kind != FreeRun {
			return tried, purged, true // the run has changed
		}
	}
	p.free.remove(s)
	s.purgeTried = at <= base
	p.free.insert(s)
	p.dropTables(s)
	return tried, purged, true
}

// purged records that n pages of a free run no longer hold memory. mu is held.
func (p *Heap) purged(s *Span, n uintptr) {
	p.oversize.dirty -= oversizePart(s.dirty) - oversizePart(s.dirty-n)
	s.dirty -= n
	p.dirty -= n
	p.noteTaken(0, 0)
	p.uncharge(n * PageBytes)
	p.traffic.Purged += uint64(n * PageBytes)
}

// discard gives a run's memory back at once and makes it a free run. The run is not
// in the page map, and all its pages are dirty. mu is not held.
//
// If the system unmapped the run and refuses to map or to place it anew, the run goes to p.unmapped,
// still charged, until RetryUnmapped.
func (p *Heap) discard(s *Span) {
	low, high, err := p.remap(s)
	r := Addresses.RegionOf(s.Base)
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Separate != 0 && low < high {
		err = p.placement.apply(low, high-low) // with mu, so that no Place comes in between
	}
	if err != nil {
		s.reset(unmappedRun)
		s.setSeparate() // so that RetryUnmapped maps it anew
		*r.page(s.Base) = s
		p.unmapped.Push(s)
		return
	}
	if low < high {
		r.dirty.ClearRange(r.pageIndex(low), (high-low)/PageBytes)
		p.uncharge(high - low)
		p.traffic.Purged += uint64(high - low)
	}
	s.reset(FreeRun)
	p.insert(s)
}

// remap gives a run's memory back; the pages in [low, high) then read zero. It maps a separate
// run anew, which ends its advice and placement and lets the system merge the mapping with its
// neighbours'. If the system refuses but the run is usable, low == high. After an error the run
// is inaccessible.
func (p *Heap) remap(s *Span) (low, high uintptr, err error) {
	if s.Separate == 0 {
		low, high, err = Decommit(s.Base, s.Bytes())
		if err != nil {
			return 0, 0, nil // unchanged
		}
		return vm.RoundUp(low, PageBytes), high &^ (PageBytes - 1), nil
	}
	os := vm.PageBytes()
	low, high = vm.RoundUp(s.Base, os), s.End()&^(os-1)
	if low >= high {
		return 0, 0, nil
	}
	if vm.Renew(low, high-low) == nil {
		if p.HugePages {
			vm.Advise(low, high-low, vm.HugePages) // best effort
		}
		vm.Name(low, high-low, p.mapsName)
		return vm.RoundUp(low, PageBytes), high &^ (PageBytes - 1), nil
	}
	return 0, 0, vm.Commit(low, high-low)
}

// RetryUnmapped tries to map the unmapped runs again. Each that succeeds becomes a free run.
// Scavenging is held.
func (p *Heap) RetryUnmapped() {
	p.mu.Lock()
	unmapped := p.unmapped
	p.unmapped = List{}
	for at := unmapped.Head; at != 0; at = SpanPtr(at).Next {
		s := SpanPtr(at)
		*Addresses.RegionOf(s.Base).page(s.Base) = nil
	}
	p.mu.Unlock()
	for unmapped.Head != 0 {
		s := SpanPtr(unmapped.Head)
		unmapped.Remove(s)
		p.released(s, false)
	}
}

// RetryPurge makes the next purge try again the runs that an earlier one left dirty.
func (p *Heap) RetryPurge() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free.retryPurge()
}

// Wake starts the timer unless it runs.
func (p *Heap) Wake() {
	if p.decay > 0 && !p.Alarm.Set() {
		p.Alarm.start(p.decay/TicksPerDecay, p.tick)
	}
}

// WakeAgain restarts a timer that is overdue: see alarm.
func (p *Heap) WakeAgain() {
	if p.decay > 0 && p.Alarm.Missed(p.decay) {
		p.Alarm.start(p.decay/TicksPerDecay, p.tick)
	}
}

// PurgeUnused is the page heap's part of a tick. It purges leastDirty pages, the low-water mark
// since the last tick, frees the slabs that KeepSlabs has kept, and lowers the watermark. It
// reports whether another tick is needed. Scavenging is held.
func (p *Heap) PurgeUnused() (more bool) {
	p.mu.Lock()
	unused, dirty, kept := p.leastDirty, p.dirty, p.metadata.kept
	p.mu.Unlock()
	if kept {
		p.FreeEmptySlabs()
	}
	p.Purge(unused)
	p.mu.Lock()
	defer p.mu.Unlock()
	more = p.dirty < dirty || p.leastDirty < p.dirty
	p.leastDirty = p.dirty
	p.lowerWatermark()
	return more
}

// PurgeFor makes room for a request of the given pages. It purges that number of free pages and
// SlackPages. Without a limit the system is out of memory, so it purges all. It waits for an
// ongoing purge, which may have freed them already. It reports false, and purges nothing, if the
// limit would still refuse the request. No lock is held.
func (p *Heap) PurgeFor(pages uintptr) bool {
	p.mu.Lock()
	helps := p.mayCharge(pages) == nil
	p.mu.Unlock()
	if !helps {
		return false
	}
	p.Scavenging.Lock()
	defer p.Scavenging.Unlock()
	if p.Closed.Load() {
		return false
	}
	if pages += SlackPages; p.Limit() == 0 {
		pages = ^uintptr(0)
	}
	p.Purge(pages)
	return true
}
