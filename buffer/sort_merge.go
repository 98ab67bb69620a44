// Merge: merges two sorted runs in place, with a copy of the left one in scratch.
//
//	data     | A: a0 a1 a2        | B: b0 b1 b2        |
//	scratch  | a0 a1 a2           |
//	data     |   gap   b0|   gap     b1|    gap      b2|
//
// A is copied to scratch. Both runs are cut in pieces, so that all frames of a0 and b0 precede
// all frames of a1 and b1. Each pair of pieces is merged by itself. b0 is moved to the end of the
// place for the merged piece, with a gap as long as a0 before it.
//
// A merge never overwrites unread frames: when it has taken x bytes of a0 and y of b0, it has
// written x+y bytes, and the unread rest of b0 begins at len(a0)+y, which is at least x+y. The
// gap is always as long as the unread rest of a0. So a merge may stop at any time: it copies the
// rest to the gap, and all frames are in data.

package buffer

import (
	"slices"
	"sort"
)

const (
	minPiece = 16 << 10 // bytes that are worth a goroutine
	maxMarks = 256
)

// A merger merges runs of frames. Algorithms call it, and it calls their mergePiece.
type merger struct {
	*job
	order
	layout layout
	piece  func(out, left []byte) bool // algorithm.mergePiece
}

// A run is a sorted sequence of frames.
type run struct {
	data  []byte
	marks []int // offsets of some frames, ascending; the first is 0
}

// merge merges the runs data[:left] and data[left:] with up to parallel goroutines. last has the
// sizes of their last frames. It returns the size of the last frame of data.
func (m *merger) merge(data []byte, left int, last [2]int, scratch []byte, parallel int) int {
	switch {
	case left == 0:
		return last[1]
	case left == len(data) || m.stop.Load():
		return last[0]
	}
	lastA, lastB := data[left-last[0]:], data[len(data)-last[1]:]
	if m.compareFrames(lastA, data[left:]) <= 0 {
		return last[1]
	}
	if m.compareFrames(lastB, data) < 0 {
		rotate(data, left, scratch)
		return last[0]
	}
	if left > len(scratch) {
		return m.mergeLarge(data, left, last, scratch, parallel)
	}
	parallel = min(parallel, max(1, len(data)/minPiece))
	a, b := m.cutRuns(data[:left], data[left:], parallel)
	m.together(parallel, func(i int) { copy(scratch[a[i]:a[i+1]], data[a[i]:a[i+1]]) })
	for i := range parallel {
		copy(data[a[i+1]+b[i]:], data[left+b[i]:left+b[i+1]])
	}
	// The user's order may contradict itself, so only the merge knows which frame is last.
	lastOf := func(i int) int {
		if m.piece(data[a[i]+b[i]:a[i+1]+b[i+1]], scratch[a[i]:a[i+1]]) {
			return last[0]
		}
		return last[1]
	}
	sizes := make([]int, parallel)
	m.together(parallel, func(i int) { sizes[i] = lastOf(i) })
	i := parallel - 1
	for a[i] == left && b[i] == len(data)-left {
		i--
	}
	return sizes[i]
}

func (m *merger) compareFrames(a, b []byte) int {
	return m.order.compare(m.layout.record(a), m.layout.record(b))
}

// cutRuns cuts runs a and b into n pieces each, so that all frames of a piece precede all frames
// of later pieces of either run. Pieces i of a and b together have about one nth of the bytes.
func (m *merger) cutRuns(a, b []byte, n int) (cutsA, cutsB []int) {
	cutsA, cutsB = make([]int, n+1), make([]int, n+1)
	cutsA[n], cutsB[n] = len(a), len(b)
	if n == 1 {
		return cutsA, cutsB
	}
	runs := [2]run{{data: a}, {data: b}}
	m.together(2, func(i int) { runs[i].marks = m.marks(runs[i].data) })
	if m.stop.Load() {
		return cutsA, cutsB
	}
	for i := 1; i < n; i++ {
		cutsA[i], cutsB[i] = m.cutAt(runs[0], runs[1], (len(a)+len(b))/n*i)
		cutsA[i] = max(cutsA[i], cutsA[i-1]) // if the order contradicts itself
		cutsB[i] = max(cutsB[i], cutsB[i-1])
	}
	return cutsA, cutsB
}

// marks returns the offsets of up to maxMarks frames at about equal distances.
func (m *merger) marks(data []byte) []int {
	step := len(data)/maxMarks + 1
	if size := m.layout.fixed; size != 0 {
		step = (step + size - 1) / size * size
	}
	var marks []int
	for at, next := 0, 0; at < len(data); {
		if at >= next {
			marks = append(marks, at)
			next = at + step
		}
		if m.layout.fixed != 0 {
			at = next
		} else {
			at += m.layout.frame(data[at:])
		}
	}
	return marks
}

// cutAt returns a cut of a and b near offset at of the merged run: before a marked
// frame of a or of b, whichever comes nearer.
func (m *merger) cutAt(a, b run, at int) (inA, inB int) {
	i := sort.Search(len(a.marks), func(i int) bool {
		return a.marks[i]+b.before(m, a.data[a.marks[i]:], 0) > at
	})
	j := sort.Search(len(b.marks), func(j int) bool {
		return b.marks[j]+a.before(m, b.data[b.marks[j]:], 1) > at
	})
	i, j = max(i-1, 0), max(j-1, 0)
	byA := a.marks[i] + b.before(m, a.data[a.marks[i]:], 0)
	byB := b.marks[j] + a.before(m, b.data[b.marks[j]:], 1)
	if max(byA-at, at-byA) <= max(byB-at, at-byB) {
		frame := a.data[a.marks[i]:]
		return a.marks[i], b.bound(m, frame, 0)
	}
	frame := b.data[b.marks[j]:]
	return a.bound(m, frame, 1), b.marks[j]
}

// before returns the last mark of r that is not greater than bound, or 0.
func (r run) before(m *merger, frame []byte, least int) int {
	i := sort.Search(len(r.marks), func(i int) bool {
		return m.compareFrames(r.data[r.marks[i]:], frame) >= least
	})
	return r.marks[max(i-1, 0)]
}

// bound returns the offset of r's first frame that is not less than the given one (least 0), or
// that is greater (least 1).
func (r run) bound(m *merger, frame []byte, least int) int {
	at := r.before(m, frame, least)
	for at < len(r.data) && m.compareFrames(r.data[at:], frame) < least {
		at += m.layout.frame(r.data[at:])
	}
	return at
}

// mergeLarge merges runs if the left one does not fit in scratch, because a frame is larger than
// the average. It cuts both runs in two, swaps the middle pieces, and merges each side:
//
//	| a0 | a1 | b0 | b1 |
//	| a0 | b0 | a1 | b1 |
func (m *merger) mergeLarge(data []byte, left int, last [2]int, scratch []byte, parallel int) int {
	var middle, lastA int // the beginning of a1, and the size of the frame before it
	for middle == 0 || middle < left/2 && middle < left-last[0] {
		lastA = m.layout.frame(data[middle:])
		middle += lastA
	}
	if middle == left { // one frame
		middle = 0
	}
	var at, lastB int // the beginning of b1, and the size of the frame before it
	for at < len(data)-left && m.compareFrames(data[left+at:], data[middle:]) < 0 {
		lastB = m.layout.frame(data[left+at:])
		at += lastB
	}
	rotate(data[middle:left+at], left-middle, scratch)
	if middle == 0 && left+at == len(data) {
		return last[0]
	}
	if middle == 0 {
		return last[1]
	}
	m.merge(data[:middle+at], middle, [2]int{lastA, lastB}, scratch, parallel)
	return m.merge(data[middle+at:], left-middle, last, scratch, parallel)
}

// rotate swaps data[:left] with the rest.
func rotate(data []byte, left int, scratch []byte) {
	if left <= len(scratch) {
		copy(scratch, data[:left])
		n := copy(data, data[left:])
		copy(data[n:], scratch[:left])
		return
	}
	slices.Reverse(data[:left])
	slices.Reverse(data[left:])
	slices.Reverse(data)
}
