// Purge: giving the memory of free pages back to the system.
//
// purge works down from the end of a run, a slice at a time. It holds mu while the
// system takes a slice back, and lets others have mu after each. The run is a free run
// throughout: between two slices it may be allocated, cut or joined, and purge goes
// on to another one. So a purge keeps no addresses from anybody, and an allocation
// waits for one slice at most.
//
// Long runs go first: they take the fewest system calls per page. In a run the lowest
// pages stay the longest, since they are allocated first. A run that was purged to
// its beginning is marked purgeTried and moves to the end of its bin. Pages that the
// system did not take, or that are no whole unit, stay dirty, and are not tried again
// until the run changes or retryPurge.

package heap

import (
	"time"

	"github.com/freehold-go/freehold/internal/vm"
)

// DefaultDecay is how long a heap keeps unused memory.
const DefaultDecay = time.Second

// ticksPerDecay is how often the timer of a heap ticks.
const ticksPerDecay = 3

// slicePages is what the system takes back while others wait for mu.
const slicePages = 512 << 10 / pageBytes

// onSlice, if set, is called after each slice, without mu. For tests.
var onSlice func(*pageHeap)

// purge gives the memory of up to n free pages back to the system. scavenging is held.
func (p *pageHeap) purge(n uintptr) { p.purgeRuns(n, 1) }

// purgeRuns is purge for runs with at least minDirty dirty pages. It returns the
// number of pages given back. scavenging is held.
func (p *pageHeap) purgeRuns(n, minDirty uintptr) (purged uintptr) {
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

// dirtyRun returns a free run with at least minDirty dirty pages that purge may try,
// of the longest bin that has one, or nil. mu is held.
func (p *pageHeap) dirtyRun(minDirty uintptr) *pspan {
	for b := p.free.below(numBins); b >= bin(minDirty); b = p.free.below(b) {
		for at := p.free.lists[b].head; at != 0; at = pspanPtr(at).next {
			s := pspanPtr(at)
			if s.dirty == 0 || s.purgeTried {
				break // and so are the others of the bin: see bins.insert
			}
			if s.dirty >= minDirty {
				return s
			}
		}
	}
	return nil
}

// purgeRun decommits up to n dirty pages of a run, from its end down, in whole units of
// the system's page, or of huge pages, which less would split. It returns how many
// dirty pages it tried and how many the system took, and reports whether there was a
// run.
func (p *pageHeap) purgeRun(n, minDirty uintptr) (tried, purged uintptr, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.dirtyRun(minDirty)
	if s == nil {
		return 0, 0, false
	}
	unit := max(vm.PageBytes(), pageBytes)
	if p.hugePages {
		unit = vm.HugePageBytes
	}
	r := addresses.regionOf(s.base)
	base, at := s.base, s.end()
	for at > base && tried < n {
		to := r.dirty.last(r.pageIndex(base), r.pageIndex(at), true)
		from := r.dirty.last(r.pageIndex(base), to, false)
		from = max(from, to-min(to, slicePages, n-tried))
		at = r.base + from*pageBytes
		// Whole units, with clean pages of the run that share one.
		low := max(roundUp(base, unit), at&^(unit-1))
		high := min(s.end()&^(unit-1), roundUp(r.base+to*pageBytes, unit))
		if from == to || low >= high {
			continue
		}
		at = min(at, low)
		slice := r.dirty.count(r.pageIndex(low), (high-low)/pageBytes)
		tried += slice
		if vm.Decommit(low, high-low) == nil {
			purged += slice
			r.dirty.clearRange(r.pageIndex(low), (high-low)/pageBytes)
			p.purged(s, slice)
		}
		before := *s
		p.mu.Unlock()
		if onSlice != nil {
			onSlice(p)
		}
		p.mu.Lock()
		if *r.page(base) != s || s.base != base || s.pages != before.pages || s.dirty != before.dirty || s.kind != freeRun {
			return tried, purged, true // it is another run now
		}
	}
	p.free.remove(s)
	s.purgeTried = at <= base
	p.free.insert(s)
	p.dropTables(s)
	return tried, purged, true
}

// purged notes that n pages of a free run no longer hold memory. mu is held.
func (p *pageHeap) purged(s *pspan, n uintptr) {
	p.oversize.dirty -= oversizePart(s.dirty) - oversizePart(s.dirty-n)
	s.dirty -= n
	p.dirty -= n
	p.noteTaken(0, 0)
	p.uncharge(n * pageBytes)
	p.traffic.purged += uint64(n * pageBytes)
}

// discard gives a run's memory back at once and makes it a free run. The run is not
// in the page map, and all its pages are dirty. mu is not held.
//
// If the system unmapped the run and refuses to map it anew, the run is set aside
// with its charge until retryUnmapped.
func (p *pageHeap) discard(s *pspan) {
	low, high, err := p.remap(s)
	r := addresses.regionOf(s.base)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		s.reset(unmappedRun)
		s.setSeparate() // so that retryUnmapped maps it anew
		*r.page(s.base) = s
		p.unmapped.push(s)
		return
	}
	if low < high {
		r.dirty.clearRange(r.pageIndex(low), (high-low)/pageBytes)
		p.uncharge(high - low)
		p.traffic.purged += uint64(high - low)
	}
	s.reset(freeRun)
	p.insert(s)
}

// remap gives a run's memory back. The pages in [low, high) then read zero. A separate
// run is mapped anew, which ends its advice and lets the system join the mapping with
// its neighbours'. If the system refuses but the run is usable, low == high. An error
// means that the run is inaccessible.
func (p *pageHeap) remap(s *pspan) (low, high uintptr, err error) {
	if s.separate == 0 {
		low, high, err = decommit(s.base, s.bytes())
		if err != nil {
			return 0, 0, nil // unchanged
		}
		return roundUp(low, pageBytes), high &^ (pageBytes - 1), nil
	}
	os := vm.PageBytes()
	low, high = roundUp(s.base, os), s.end()&^(os-1)
	if low >= high {
		return 0, 0, nil
	}
	if vm.Renew(low, high-low) == nil {
		if p.hugePages {
			vm.Advise(low, high-low, vm.HugePages) // best effort
		}
		vm.Name(low, high-low, p.mapsName)
		return roundUp(low, pageBytes), high &^ (pageBytes - 1), nil
	}
	return 0, 0, vm.Commit(low, high-low)
}

// retryUnmapped tries to map the unmapped runs again. Those that the system maps now
// become free runs. scavenging is held.
func (p *pageHeap) retryUnmapped() {
	p.mu.Lock()
	unmapped := p.unmapped
	p.unmapped = list{}
	for at := unmapped.head; at != 0; at = pspanPtr(at).next {
		s := pspanPtr(at)
		*addresses.regionOf(s.base).page(s.base) = nil
	}
	p.mu.Unlock()
	for unmapped.head != 0 {
		s := pspanPtr(unmapped.head)
		unmapped.remove(s)
		p.released(s, false)
	}
}

// retryPurge lets the next purge try runs again that still hold memory after one.
func (p *pageHeap) retryPurge() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free.retryPurge()
}

// wake starts the timer unless it runs.
func (p *pageHeap) wake() {
	if p.decay > 0 && !p.alarm.set() {
		p.alarm.start(p.decay/ticksPerDecay, p.tick)
	}
}

// wakeAgain restarts a timer that is overdue: see alarm.
func (p *pageHeap) wakeAgain() {
	if p.decay > 0 && p.alarm.missed(p.decay) {
		p.alarm.start(p.decay/ticksPerDecay, p.tick)
	}
}

// purgeUnused is the page heap's part of a tick. It purges leastDirty pages: that
// many were free at every moment since the last tick. It reports whether another tick
// is needed. scavenging is held.
func (p *pageHeap) purgeUnused() (more bool) {
	p.mu.Lock()
	unused, dirty := p.leastDirty, p.dirty
	p.mu.Unlock()
	p.purge(unused)
	p.mu.Lock()
	defer p.mu.Unlock()
	more = p.dirty < dirty || p.leastDirty < p.dirty
	p.leastDirty = p.dirty
	return more
}

// purgeFor purges free pages if the limit then permits that many others, and reports
// whether another try may help. It waits for an ongoing purge, which may have purged
// them already. Without a limit the system is out of memory, and it purges all. No
// lock is held.
func (p *pageHeap) purgeFor(pages uintptr) bool {
	p.mu.Lock()
	helps := p.mayCharge(pages) == nil
	p.mu.Unlock()
	if !helps {
		return false
	}
	p.scavenging.Lock()
	defer p.scavenging.Unlock()
	if p.closed.Load() {
		return false
	}
	if pages += slackPages; p.limit() == 0 {
		pages = ^uintptr(0)
	}
	p.purge(pages)
	return true
}
