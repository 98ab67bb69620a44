// Index: where the runs of one worker have which records, as marks in memory.
//
//	mem  | key | key | key |     free     | mark | mark | mark |
//
// A mark has the offset of a record in its file and the first bytes of its key. A run has a
// mark for each stride bytes. When the memory is full, the index drops every other mark and
// doubles the stride.

package extsort

import "unsafe"

type mark struct {
	at  int64  // offset of the record in its file
	key uint32 // offset of its key in mem
	n   uint32 // bytes of the key that mem has
}

const _ = -(unsafe.Sizeof(mark{}) ^ markBytes)

const (
	markBytes     = 16
	maxKeyBytes   = 256      // bytes of a key that a mark keeps
	strideOfIndex = 32 << 10 // the first stride, in bytes
)

type index struct {
	mem    []byte
	keys   int // bytes
	n      int // marks
	stride int64
	due    int64 // the next record from this offset on gets a mark
	runs   []*marks
}

// marks are the marks of one run: first to end-1 of the index x.
type marks struct {
	x          *index
	first, end int
}

func (m *marks) len() int { return m.end - m.first }

// key returns the key of mark i of the run.
func (m *marks) key(i int) []byte { return m.x.key(m.first + i) }

// at returns the offset of mark i's record.
func (m *marks) at(i int) int64 { return m.x.at(m.first + i).at }

// indexes returns n indexes that share mem.
func indexes(mem []byte, n int) []*index {
	each := len(mem) / n &^ (markBytes - 1)
	xs := make([]*index, n)
	for i := range xs {
		xs[i] = &index{mem: mem[i*each:][:each], stride: min(strideOfIndex, int64(each))}
	}
	return xs
}

// at returns mark i.
func (x *index) at(i int) *mark {
	b := x.mem[len(x.mem)-(i+1)*markBytes:][:markBytes]
	return (*mark)(unsafe.Pointer(unsafe.SliceData(b)))
}

// key returns the key of mark i.
func (x *index) key(i int) []byte {
	m := x.at(i)
	return x.mem[m.key:][:m.n]
}

// begin begins a run at offset from, and returns its marks.
func (x *index) begin(from int64) *marks {
	m := &marks{x: x, first: x.n, end: x.n}
	x.runs = append(x.runs, m)
	x.due = from
	return m
}

// add adds a mark to the last run, if one is due.
func (x *index) add(at int64, key []byte) {
	if at >= x.due {
		x.mark(at, key)
	}
}

// mark adds a mark to the last run, or moves due forward if there is no room for it.
func (x *index) mark(at int64, key []byte) {
	key = key[:min(len(key), maxKeyBytes)]
	r := x.runs[len(x.runs)-1]
	for x.keys+len(key)+(x.n+1)*markBytes > len(x.mem) {
		if x.due = at + 2*x.stride; !x.thin() {
			return
		}
		if x.n > r.first {
			if x.due = x.at(x.n-1).at + x.stride; at < x.due {
				return
			}
		}
	}
	x.n++
	*x.at(x.n - 1) = mark{at: at, key: uint32(x.keys), n: uint32(copy(x.mem[x.keys:], key))}
	x.keys += len(key)
	x.due = at + x.stride
	r.end = x.n
}

// thin drops every other mark of each run. It reports whether that made room.
func (x *index) thin() bool {
	x.stride *= 2
	before := x.n
	n, keys := 0, 0
	for _, r := range x.runs {
		from := n
		for i := r.first; i < r.end; i += 2 {
			m := *x.at(i)
			copy(x.mem[keys:], x.mem[m.key:][:m.n])
			m.key = uint32(keys)
			keys += int(m.n)
			*x.at(n) = m
			n++
		}
		r.first, r.end = from, n
	}
	x.n, x.keys = n, keys
	return n < before
}
