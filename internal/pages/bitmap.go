// Bitmaps: ranges of bits in off-heap words, one bit per page or per block.

package pages

import (
	"math/bits"

	"github.com/freehold-go/freehold/internal/vm"
)

// Bitmap is the address of an array of 64-bit words.
type Bitmap uintptr

func (m Bitmap) Word(i uintptr) *uint64 { return (*uint64)(vm.Pointer(uintptr(m) + i*8)) }

func (m Bitmap) Has(i uintptr) bool { return *m.Word(i / 64)>>(i%64)&1 != 0 }

// each calls f for every word that [i, i+n) touches, with the bits inside it.
func (m Bitmap) each(i, n uintptr, f func(word *uint64, mask uint64)) {
	for end := i + n; i < end; {
		mask := ^uint64(0) << (i % 64)
		next := i&^63 + 64
		if next > end {
			mask &= 1<<(end%64) - 1
		}
		f(m.Word(i/64), mask)
		i = next
	}
}

func (m Bitmap) SetRange(i, n uintptr) {
	m.each(i, n, func(w *uint64, mask uint64) { *w |= mask })
}

func (m Bitmap) ClearRange(i, n uintptr) {
	m.each(i, n, func(w *uint64, mask uint64) { *w &^= mask })
}

// Count returns the number of bits set in [i, i+n).
func (m Bitmap) Count(i, n uintptr) (set uintptr) {
	m.each(i, n, func(w *uint64, mask uint64) { set += uintptr(bits.OnesCount64(*w & mask)) })
	return set
}

// last returns the position behind the last bit in [begin, end) that equals want, or begin.
func (m Bitmap) last(begin, end uintptr, want bool) uintptr {
	for end > begin {
		w := *m.Word((end - 1) / 64)
		if !want {
			w = ^w
		}
		if w <<= 63 - (end-1)%64; w != 0 {
			return max(end-uintptr(bits.LeadingZeros64(w)), begin)
		}
		end = (end - 1) &^ 63
	}
	return begin
}

// lastRun returns the range of the last consecutive set bits in [begin, end), at most n of them. It
// reads no words below these: purge takes a long run in slices, and each slice calls lastRun.
func (m Bitmap) lastRun(begin, end, n uintptr) (from, to uintptr) {
	to = m.last(begin, end, true)
	return m.last(to-min(to-begin, n), to, false), to
}

// Next returns the first position in [i, end) whose bit equals want, or end.
func (m Bitmap) Next(i, end uintptr, want bool) uintptr {
	for i < end {
		w := *m.Word(i / 64)
		if !want {
			w = ^w
		}
		if w >>= i % 64; w != 0 {
			return min(i+uintptr(bits.TrailingZeros64(w)), end)
		}
		i = i&^63 + 64
	}
	return end
}
