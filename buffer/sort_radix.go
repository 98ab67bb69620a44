// Radix sort of records of a fixed size, moved as they are.
//
//	data     | A          | B          |
//	scratch  | room for B |
//
// A and B are sorted one after the other, the most significant digit first. One digit scatters a
// half to buckets in scratch, and the next digit scatters each bucket back. Small buckets are
// sorted by insertion. Then A and B are merged. Scattering keeps the order of equal digits, so
// the sort is stable.
//
// A stable radix sort needs scratch as large as its data, so it sorts halves. The merge is cheap
// because it has no branch that depends on the records.

package buffer

import (
	"math/bits"
	"unsafe"
)

const (
	fewRecords  = 24      // insertion sorts up to this many faster
	manyRecords = 1 << 16 // with this many or more, digits have 11 bits instead of 8
)

// radix sorts records of type R.
type radix[R any] struct {
	*merger
	loads []load // of keys, the most significant first
}

// elements returns p as a slice of R. It drops bytes at the end that are not a whole R.
func elements[R any](p []byte) []R {
	return unsafe.Slice((*R)(unsafe.Pointer(unsafe.SliceData(p))), len(p)/int(unsafe.Sizeof(*new(R))))
}

func (x *radix[R]) sort(data, scratch []byte) int {
	all, room := elements[R](data), elements[R](scratch)
	size := int(unsafe.Sizeof(all[0]))
	if inOrder(x.job, all, func(a, b *R) bool { return x.less(a, b, 0) }) {
		x.tick(len(data))
		return size
	}
	a, b := all[:len(all)/2], all[len(all)/2:]
	x.spread(a, room[:len(a)], false, 0, true)
	x.spread(b, room[:len(b)], false, 0, true)
	return x.merge(data, len(a)*size, [2]int{size, size}, scratch, 1)
}

// inOrder reports whether records are sorted. If each is less than the one before, it reverses
// them. It returns true if the sort is to stop.
func inOrder[E any](j *job, records []E, less func(a, b *E) bool) bool {
	i := 1
	if len(records) < 2 || less(&records[1], &records[0]) {
		for i < len(records) && !j.stop.Load() && less(&records[i], &records[i-1]) {
			i++
		}
		if i < len(records) {
			return j.stop.Load()
		}
		for a, b := 0, len(records)-1; a < b; a, b = a+1, b-1 {
			records[a], records[b] = records[b], records[a]
		}
		return true
	}
	for i < len(records) && !j.stop.Load() && !less(&records[i], &records[i-1]) {
		i++
	}
	return i == len(records) || j.stop.Load()
}

// less compares keys by loads[from:].
func (x *radix[R]) less(a, b *R, from int) bool {
	for i := from; i < len(x.loads); i++ {
		l := &x.loads[i]
		if p, q := l.word(unsafe.Pointer(a)), l.word(unsafe.Pointer(b)); p != q {
			return p < q
		}
	}
	return false
}

// spread sorts a by loads[from:], to b if toB is set, else in place. The other slice is scratch.
// report is set only if it sorts in place.
func (x *radix[R]) spread(a, b []R, toB bool, from int, report bool) {
	differ := uint64(0)
	few := len(a) <= fewRecords || x.stop.Load()
	for ; !few && from < len(x.loads); from++ {
		if differ = x.differ(a, from); differ != 0 {
			break
		}
	}
	if differ != 0 {
		x.scatter(a, b, toB, from, bits.Len64(differ), report)
		return
	}
	x.finish(a, b, toB, from, len(a) <= fewRecords, report)
}

// finish copies a to b if toB is set, and sorts the result if insert is set.
func (x *radix[R]) finish(a, b []R, toB bool, from int, insert, report bool) {
	if toB {
		copy(b, a)
		a = b
	}
	if insert {
		x.insert(a, from)
	}
	if report {
		x.tick(len(a) * int(unsafe.Sizeof(*new(R))))
	}
}

// differ returns the bits in which the words of a differ.
func (x *radix[R]) differ(a []R, from int) (differ uint64) {
	l := x.loads[from]
	first := l.word(unsafe.Pointer(&a[0]))
	for i := range a {
		differ |= l.word(unsafe.Pointer(&a[i])) ^ first
	}
	return differ
}

// scatter distributes a into b by the digit whose highest bit is top, then sorts each
// bucket.
func (x *radix[R]) scatter(a, b []R, toB bool, from, top int, report bool) {
	var narrow [1 << 8]int
	at, width := narrow[:], 8
	if len(a) >= manyRecords {
		at, width = make([]int, 1<<11), 11
	}
	shift := max(top-width, 0)
	l := x.loads[from]
	for i := range a {
		at[int(l.word(unsafe.Pointer(&a[i]))>>(shift&63))&(len(at)-1)]++
	}
	sum, most := 0, 0
	for digit, n := range at {
		at[digit] = sum
		sum += n
		most = max(most, n)
	}
	for i := range a {
		next := &at[int(l.word(unsafe.Pointer(&a[i]))>>(shift&63))&(len(at)-1)]
		b[*next] = a[i]
		*next++
	}
	if most <= fewRecords {
		x.finish(b, a, !toB, from, true, report)
		return
	}
	begin := 0
	if report { // Progress may panic: a must then have all records
		defer func() { copy(a[begin:], b[begin:]) }()
	}
	for _, end := range at {
		if end == begin {
			continue
		}
		bucket := end - begin
		x.spread(b[begin:end], a[begin:end], !toB, from, false)
		begin = end
		if report {
			x.tick(bucket * int(unsafe.Sizeof(a[0])))
		}
	}
}

func (x *radix[R]) insert(a []R, from int) {
	if from == len(x.loads) || len(a) == 0 {
		return
	}
	l := x.loads[from]
	longer := from+1 < len(x.loads)
	most := l.word(unsafe.Pointer(&a[0]))
	for i := 1; i < len(a); i++ {
		w := l.word(unsafe.Pointer(&a[i]))
		if w > most || w == most && !longer {
			most = w
			continue
		}
		record := a[i]
		j := i
		for ; j > 0; j-- {
			before := l.word(unsafe.Pointer(&a[j-1]))
			if before < w || before == w && !(longer && x.less(&record, &a[j-1], from+1)) {
				break
			}
			a[j] = a[j-1]
		}
		a[j] = record
	}
}

// mergePiece has no branch that depends on a record, which a processor would mispredict every
// other time. A round is so short that neither run can end within it.
func (x *radix[R]) mergePiece(out, left []byte) bool {
	const round = 4096
	to, a := elements[R](out), elements[R](left)
	l := x.loads[0] // keys of no bytes are all equal, and such runs are not merged
	longer := len(x.loads) > 1
	w, i, j := 0, 0, len(a)
	for !x.stop.Load() {
		n := min(len(a)-i, len(to)-j, round)
		if n == 0 {
			break
		}
		for range n {
			from := [2]*R{&a[i], &to[j]}
			p, q := l.word(unsafe.Pointer(from[0])), l.word(unsafe.Pointer(from[1]))
			_, right := bits.Sub64(q, p, 0) // 1 if q is less
			if p == q && longer && x.less(from[1], from[0], 1) {
				right = 1
			}
			to[w] = *from[right&1]
			w++
			i += int(1 - right)
			j += int(right)
		}
	}
	return copy(to[w:], a[i:]) > 0
}
