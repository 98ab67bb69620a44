// Merge sort by the user's comparison, of records of a fixed size or of entries.
//
// The left half of each part is merged from scratch, as sort_merge.go describes. The
// comparison is only called while all records are in their places but for such a gap,
// which is filled if it panics.

package buffer

import (
	"math/bits"
	"unsafe"

	"github.com/freehold-go/freehold/internal/keysort"
)

const fewCompared = 12 // up to here insertion sort needs about as few comparisons as merging

// mergeSort sorts elements that are records, or entries of records.
type mergeSort[E any] struct {
	*merger
	data []byte // that entries point into; nil if elements are records
}

// record returns the record of an element.
func (m *mergeSort[E]) record(e *E) []byte {
	if m.data != nil {
		e := (*keysort.Entry)(unsafe.Pointer(e))
		return m.data[e.At : e.At+e.N : e.At+e.N]
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(e)), unsafe.Sizeof(*e))
}

func (m *mergeSort[E]) less(a, b *E) bool { return m.cmp(m.record(a), m.record(b)) < 0 }

func (m *mergeSort[E]) sort(data, scratch []byte) int {
	m.sortElements(elements[E](data), elements[E](scratch), true)
	return int(unsafe.Sizeof(*new(E)))
}

// sortElements sorts a with room for half of it in scratch.
func (m *mergeSort[E]) sortElements(a, scratch []E, report bool) {
	if !inOrder(m.job, a, m.less) {
		m.sortParts(a, scratch, report)
	} else if report {
		m.tick(len(a) * int(unsafe.Sizeof(a[0])))
	}
}

func (m *mergeSort[E]) sortParts(a, scratch []E, report bool) {
	if m.stop.Load() {
		return
	}
	if len(a) <= fewCompared {
		m.insert(a)
	}
	if report && len(a) <= manyRecords {
		m.tick(len(a) * int(unsafe.Sizeof(a[0])))
		report = false
	}
	if len(a) <= fewCompared {
		return
	}
	left, right := a[:len(a)/2], a[len(a)/2:]
	m.sortParts(left, scratch, report)
	m.sortParts(right, scratch, report)
	if m.stop.Load() || !m.less(&right[0], &left[len(left)-1]) {
		return
	}
	n := copy(scratch, left)
	m.mergeElements(a, scratch[:n])
}

// insert finds the place of each record before it moves any.
func (m *mergeSort[E]) insert(a []E) {
	for i := 1; i < len(a); i++ {
		j := i
		for j > 0 && m.less(&a[i], &a[j-1]) {
			j--
		}
		if j < i {
			e := a[i]
			copy(a[j+1:i+1], a[j:i])
			a[j] = e
		}
	}
}

func (m *mergeSort[E]) mergePiece(out, left []byte) bool {
	return m.mergeElements(elements[E](out), elements[E](left))
}

// mergeElements merges without a branch on what the comparison returns, which a
// processor would guess wrong every other time.
func (m *mergeSort[E]) mergeElements(to, left []E) (leftLast bool) {
	w, i, j := 0, 0, len(left)
	defer func() { leftLast = copy(to[w:], left[i:]) > 0 }()
	stop := &m.stop
	for i < len(left) && j < len(to) && !stop.Load() {
		from := [2]*E{&left[i], &to[j]}
		right := uint(m.cmp(m.record(from[1]), m.record(from[0]))) >> (bits.UintSize - 1) // 1 if it is less
		to[w] = *from[right&1]
		w++
		i += int(1 - right)
		j += int(right)
	}
	return
}
