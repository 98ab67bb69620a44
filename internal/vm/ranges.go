// Ranges: the addresses of unmapped files, for reuse.

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows

package vm

import (
	"cmp"
	"slices"

	"github.com/freehold-go/freehold/internal/lockrank"
)

type addressRange struct{ addr, size uintptr }

// A rangeList holds free address ranges, reserved and without access.
type rangeList struct {
	mu   lockrank.Mutex[lockrank.Leaf]
	free []addressRange // guarded by mu; disjoint, sorted by address
}

// take removes and returns the smallest range of at least size bytes.
func (l *rangeList) take(size uintptr) (r addressRange, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	best := -1
	for i, r := range l.free {
		if r.size >= size && (best < 0 || r.size < l.free[best].size) {
			best = i
		}
	}
	if best < 0 {
		return addressRange{}, false
	}
	r = l.free[best]
	l.free = slices.Delete(l.free, best, best+1)
	return r, true
}

// put adds r and merges it with its neighbours where the system allows that.
func (l *rangeList) put(r addressRange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i, _ := slices.BinarySearchFunc(l.free, r, func(a, b addressRange) int { return cmp.Compare(a.addr, b.addr) })
	l.free = slices.Insert(l.free, i, r)
	if !rangesJoin {
		return
	}
	if i+1 < len(l.free) && r.addr+r.size == l.free[i+1].addr {
		l.free[i].size += l.free[i+1].size
		l.free = slices.Delete(l.free, i+1, i+2)
	}
	if i > 0 && l.free[i-1].addr+l.free[i-1].size == r.addr {
		l.free[i-1].size += l.free[i].size
		l.free = slices.Delete(l.free, i, i+1)
	}
}
