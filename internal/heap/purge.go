// Purge: giving the memory of free pages back to the system.
//
// The system calls take long, so purge works on batches of runs outside mu:
//
//	bins --takeDirty--> batch --purgeRun, without mu--> insert --> bins
//
// A run in a batch is in no bin and not in the page map, so nobody takes it or joins
// a neighbour with it. Its pages count in purging instead of dirty: requests at the
// limit know that they will be free. insert joins it with what was freed next to it
// meanwhile.
//
// Long runs go first: they take the fewest system calls per page. A run that was
// purged is marked purgeTried and moves to the end of its bin. Pages that the system
// did not take, or that are no whole unit, stay dirty, and are not tried again until
// the run changes or retryPurge.

package heap

import "github.com/freehold-go/freehold/internal/vm"

// A batch is bounded, since others cannot allocate its runs.
const (
	purgeBatchRuns  = 64
	purgeBatchPages = 64 << 20 / pageBytes
)

// purge gives the memory of up to n free pages back to the system. scavenging is held.
func (p *pageHeap) purge(n uintptr) { p.purgeRuns(n, 1) }

// purgeRuns is purge for runs with at least minDirty dirty pages. It returns the
// number of pages given back. scavenging is held, so there is one batch at a time.
func (p *pageHeap) purgeRuns(n, minDirty uintptr) (purged uintptr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n > 0 {
		batch, pages := p.takeDirty(min(n, purgeBatchPages), minDirty)
		if pages == 0 {
			break
		}
		keep := pages - min(n, pages) // pages of the run taken last, which heads the batch
		n -= min(n, pages)
		p.noteTaken(0, 0)
		p.purging = pages
		p.mu.Unlock()
		for at := batch.head; at != 0; at = spanPtr(at).next {
			s := spanPtr(at)
			if at != batch.head {
				keep = 0
			}
			s.purgeTried = keep == 0
			p.purgeRun(s, keep)
		}
		p.mu.Lock()
		p.purging = 0
		for batch.head != 0 {
			s := spanPtr(batch.head)
			batch.remove(s)
			// The bits tell what the system took back.
			r := addresses.regionOf(s.base)
			left := r.dirty.count(r.pageIndex(s.base), s.pages)
			p.uncharge((s.dirty - left) * pageBytes)
			p.traffic.purged += uint64((s.dirty - left) * pageBytes)
			purged += s.dirty - left
			p.insert(s)
			p.dropTables(s)
		}
	}
	return purged
}

// takeDirty removes free runs from their bins, longest bin first, until they have n
// dirty pages together or the batch is full. Each has at least minDirty dirty pages, so
// bins of shorter runs need no look. mu is held.
func (p *pageHeap) takeDirty(n, minDirty uintptr) (batch list, pages uintptr) {
	runs := 0
	for b := p.free.below(numBins); b >= bin(minDirty); b = p.free.below(b) {
		for at := p.free.lists[b].head; at != 0; {
			s := spanPtr(at)
			if s.dirty == 0 || s.purgeTried {
				break // and so are the others of the bin: see bins.insert
			}
			if at = s.next; s.dirty < minDirty {
				continue
			}
			p.unlink(addresses.regionOf(s.base), s)
			batch.push(s)
			pages += s.dirty
			if runs++; runs == purgeBatchRuns || pages >= n {
				return batch, pages
			}
		}
	}
	return batch, pages
}

// purgeRun decommits the dirty pages of s except the first keep, in whole units of
// the system's page, or of huge pages, which less would split. It clears the dirty
// bits of what the system took back. mu is not held.
func (p *pageHeap) purgeRun(s *span, keep uintptr) {
	r := addresses.regionOf(s.base)
	unit := max(vm.PageBytes(), pageBytes)
	if p.hugePages {
		unit = vm.HugePageBytes
	}
	for at, end := s.base, s.end(); at < end; {
		from, to := p.nextDirty(r, at, end)
		at = r.base + to*pageBytes
		kept := min(keep, to-from)
		keep -= kept
		if kept == to-from {
			continue
		}
		// Extend to whole units within the run: it may include clean pages.
		low := max(roundUp(s.base, unit), (r.base+(from+kept)*pageBytes)&^(unit-1))
		high := min(end&^(unit-1), roundUp(at, unit))
		if low < high && vm.Decommit(low, high-low) == nil {
			p.mu.Lock()
			r.dirty.clearRange(r.pageIndex(low), (high-low)/pageBytes)
			p.mu.Unlock()
		}
	}
}

// discard gives a run's memory back at once and makes it a free run. The run is not
// in the page map, and all its pages are dirty. mu is not held.
//
// If the system unmapped the run and refuses to map it anew, the run is set aside
// with its charge until retryUnmapped.
func (p *pageHeap) discard(s *span) {
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
	if debugging {
		poisonDirty(s)
	}
	p.insert(s)
}

// remap gives a run's memory back. The pages in [low, high) then read zero. A separate
// run is mapped anew, which ends its advice and lets the system join the mapping with
// its neighbours'. If the system refuses but the run is usable, low == high. An error
// means that the run is inaccessible.
func (p *pageHeap) remap(s *span) (low, high uintptr, err error) {
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
		vm.Name(low, high-low, p.name)
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
	for at := unmapped.head; at != 0; at = spanPtr(at).next {
		s := spanPtr(at)
		*addresses.regionOf(s.base).page(s.base) = nil
	}
	p.mu.Unlock()
	for unmapped.head != 0 {
		s := spanPtr(unmapped.head)
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
// whether it did. It waits for an ongoing purge, which may be what helps. Without a
// limit the system is out of memory, and it purges all. No lock is held.
func (p *pageHeap) purgeFor(pages uintptr) bool {
	p.mu.Lock()
	helps := p.dirty+p.purging > 0 && p.mayCharge(pages) == nil
	p.mu.Unlock()
	if !helps {
		return false
	}
	p.scavenging.Lock()
	defer p.scavenging.Unlock()
	if p.closed.Load() {
		return false
	}
	if pages += slackPages; p.maxBytes == 0 {
		pages = ^uintptr(0)
	}
	p.purge(pages)
	return true
}
