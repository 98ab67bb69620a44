// The list of free ranges against a set of units.

//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows

package vm

import (
	"math/rand/v2"
	"testing"
)

// TestRangeList: no range is handed out twice or lost, ranges are sorted and not
// adjacent, and take returns the best fit.
func TestRangeList(t *testing.T) {
	const units = 64
	rnd := rand.New(rand.NewPCG(1, 2))
	var l rangeList
	var free [units + 2]bool // the first and the last are never free
	l.put(addressRange{1, units})
	for u := 1; u <= units; u++ {
		free[u] = true
	}
	var taken []addressRange
	for range 20_000 {
		if i := rnd.IntN(len(taken) + 4); i < len(taken) {
			r := taken[i]
			taken = append(taken[:i], taken[i+1:]...)
			l.put(r)
			for u := r.addr; u < r.addr+r.size; u++ {
				free[u] = true
			}
		} else {
			size := 1 + uintptr(rnd.IntN(12))
			best, fits := uintptr(units+1), false
			for _, r := range l.free {
				if r.size >= size {
					best, fits = min(best, r.size), true
				}
			}
			r, ok := l.take(size)
			if ok != fits || ok && r.size != best {
				t.Fatalf("take(%d) is %v, %v, want size %d, %v", size, r, ok, best, fits)
			}
			if !ok {
				continue
			}
			if r.size > size {
				l.put(addressRange{r.addr + size, r.size - size})
				r.size = size
			}
			for u := r.addr; u < r.addr+r.size; u++ {
				if !free[u] {
					t.Fatalf("unit %d is taken twice", u)
				}
				free[u] = false
			}
			taken = append(taken, r)
		}

		last, total := uintptr(0), 0
		for _, r := range l.free {
			if r.addr < last || rangesJoin && r.addr == last {
				t.Fatalf("%v: not sorted and apart", l.free)
			}
			last = r.addr + r.size
			for u := r.addr; u < last; u++ {
				total++
				if !free[u] {
					t.Fatalf("%v: unit %d is not free", l.free, u)
				}
			}
		}
		for _, f := range free {
			if f {
				total--
			}
		}
		if total != 0 {
			t.Fatalf("%v: lost or gained %d units", l.free, total)
		}
	}
}
