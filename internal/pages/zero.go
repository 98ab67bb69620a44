// Zero: clearing memory that was used before.
//
// A resident page is cleared. A page that is not resident is dropped, in case it is in swap:
// clearing would make it resident, which takes several times as long, and the block may never
// use it. So a block keeps the resident pages of its run and gets no others.

package pages

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

const (
	// The query for resident pages takes a system call and time for each page. Below
	// minAskBytes, clearing everything is as fast as the query. Above maxAskBytes, the query
	// alone takes too long for one call.
	minAskBytes = 1 << 20
	maxAskBytes = 1 << 30

	askPages = 4096 // pages in one query
)

// clearUsed zeroes the dirty pages of s. The others read zero already. mu is not
// held.
func (p *Heap) clearUsed(s *Span) {
	unit := p.zeroUnit()
	r := Addresses.RegionOf(s.Base)
	for at, end := s.Base, s.End(); at < end; {
		from, to := p.nextDirty(r, at, end)
		at = r.Base + to*PageBytes
		zero(r.Base+from*PageBytes, (to-from)*PageBytes, unit)
	}
}

// Clear zeroes the block of size bytes at addr. All its pages are dirty.
func (p *Heap) Clear(addr, size uintptr) { zero(addr, size, p.zeroUnit()) }

// zeroUnit returns the unit in which zero drops pages.
func (p *Heap) zeroUnit() uintptr {
	if p.HugePages {
		return vm.HugePageBytes // dropping less would split one
	}
	return vm.PageBytes()
}

// zero zeroes [at, at+size), and drops pages in whole units only.
func zero(at, size, unit uintptr) {
	switch {
	case size < minAskBytes || !vm.HolesReadZero:
		clearBytes(at, size)
	case size > maxAskBytes:
		zeroByDropping(at, size, unit)
	case vm.TellsResident:
		zeroByAsking(at, size, unit)
	default:
		clearBytes(at, size)
	}
}

// zeroByAsking clears the resident pages and drops the others. It clears neighbours in one call:
// from 32 MiB on memclr bypasses the processor's caches, which is faster.
func zeroByAsking(at, size, unit uintptr) {
	os := vm.PageBytes()
	from, to := vm.RoundUp(at, os), (at+size)&^(os-1)
	clearBytes(at, from-at)
	clearBytes(to, at+size-to)
	var answer [askPages]byte
	start, was := from, byte(0)
	for next := from; next < to; {
		resident := answer[:min((to-next)/os, askPages)]
		if vm.Resident(next, uintptr(len(resident))*os, resident) != nil {
			clearBytes(start, to-start)
			return
		}
		for _, page := range resident {
			if page&1 != was {
				zeroAlike(start, next-start, was, unit)
				start, was = next, page&1
			}
			next += os
		}
	}
	zeroAlike(start, to-start, was, unit)
}

// zeroAlike zeroes pages that are all resident or all not.
func zeroAlike(at, size uintptr, resident byte, unit uintptr) {
	if resident != 0 {
		clearBytes(at, size)
	} else {
		zeroByDropping(at, size, unit)
	}
}

// zeroByDropping zeroes [at, at+size). It gives the memory of whole units back and clears the
// rest.
func zeroByDropping(at, size, unit uintptr) {
	from, to := vm.RoundUp(at, unit), (at+size)&^(unit-1)
	if !vm.HolesReadZero || from >= to || vm.Decommit(from, to-from) != nil {
		from, to = at, at
	}
	clearBytes(at, from-at)
	clearBytes(to, at+size-to)
}

func clearBytes(at, size uintptr) { clear(unsafe.Slice((*byte)(vm.Pointer(at)), size)) }
