// Merge sort by the user's comparison, of records of a fixed size or of entries.
//
// A merge copies its left half to scratch, as sort_merge.go describes. The user's comparison may
// panic while data has a gap; the unread rest of the left half then fills it.

package buffer

import (
	"math/bits"
	"unsafe"

	"github.com/freehold-go/freehold/internal/keysort"
)

const fewCompared = 12 // elements that insertion sort sorts with about as few comparisons

// A mergeSort sorts elements that are records, or entries of records.
type mergeSort[E any] struct {
	*merger
	data []byte // the records of entries; nil if elements are records
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

// sortElements sorts a. scratch has room for half of a.
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

// insert is insertion sort. It finds the place of an element before it moves any, as the
// comparison may panic.
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

// mergeElements merges as mergePiece does. It has no branch on the result of a comparison, which
// a processor would mispredict every other time.
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
