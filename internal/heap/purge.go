// Purge: giving the memory of pages back to the system.

package heap

import "github.com/freehold-go/freehold/internal/vm"

// purgeBatch bounds what purge keeps from everybody else at a time.
const (
	purgeBatchRuns  = 64
	purgeBatchPages = 64 << 20 / pageBytes
)

// purge gives the memory of up to n free pages back to the system, the longest
// runs first. scavenging is held.
func (p *pageHeap) purge(n uintptr) { p.purgeRuns(n, 1) }

// purgeRuns is purge of runs with at least minDirty pages of memory, and returns
// how many pages went. Runs are off their bins, and mu is not held, while the
// system works on them.
func (p *pageHeap) purgeRuns(n, minDirty uintptr) (purged uintptr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n > 0 {
		batch, pages := p.takeDirty(min(n, purgeBatchPages), minDirty)
		if pages == 0 {
			break
		}
		keep := pages - min(n, pages) // of the run taken last
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

// takeDirty takes free runs with at least n pages of memory together, and
// minDirty each, or as many as a batch may have, off their bins.
func (p *pageHeap) takeDirty(n, minDirty uintptr) (batch list, pages uintptr) {
	runs := 0
	for b := p.free.below(numBins); b >= bin(minDirty); b = p.free.below(b) {
		for at := p.free.lists[b].head; at != 0; {
			s := spanPtr(at)
			if s.dirty == 0 || s.purgeTried {
				break
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

// purgeRun decommits the pages of s that hold memory, but for the first keep of
// them: with huge pages only whole ones, since less would split them. What the
// system refuses stays.
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
		// Whole units, with clean pages of the run that share one.
		low := max(roundUp(s.base, unit), (r.base+(from+kept)*pageBytes)&^(unit-1))
		high := min(end&^(unit-1), roundUp(at, unit))
		if low < high && vm.Decommit(low, high-low) == nil {
			p.mu.Lock()
			r.dirty.clearRange(r.pageIndex(low), (high-low)/pageBytes)
			p.mu.Unlock()
		}
	}
}

// discard gives the memory of a run that nobody else can reach back at once, and
// frees the run.
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
	p.insert(s)
}

// remap gives a run's memory back; the pages in [low, high) read zero then.
// Advice is gone then, and a separate run is one mapping with its neighbours again.
// An error says that the run cannot be used.
func (p *pageHeap) remap(s *span) (low, high uintptr, err error) {
	if s.separate == 0 {
		low, high, err = decommit(s.base, s.bytes())
		if err != nil {
			return 0, 0, nil // as it was
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

// retryUnmapped frees the unmapped runs that the system maps now. scavenging is held.
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

// retryPurge has the runs that were purged, but not wholly, tried again.
func (p *pageHeap) retryPurge() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free.retryPurge()
}

// wake makes sure that the timer runs.
func (p *pageHeap) wake() {
	if p.decay > 0 && !p.alarm.set() {
		p.alarm.start(p.decay/ticksPerDecay, p.tick)
	}
}

// wakeAgain is wake after a timer that never fired.
func (p *pageHeap) wakeAgain() {
	if p.decay > 0 && p.alarm.missed(p.decay) {
		p.alarm.start(p.decay/ticksPerDecay, p.tick)
	}
}

// purgeUnused is the page heap's part of a tick: it gives back as many pages as
// were free at every moment since the last one, and reports whether there is
// something to watch. scavenging is held.
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

// purgeFor gives the memory of free pages back where that helps to get that many
// others, and reports whether it did; a purge under way is waited for. No lock is
// held.
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
		pages = ^uintptr(0) // it is the system that has no more
	}
	p.purge(pages)
	return true
}
