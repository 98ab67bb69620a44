// Index: what is where in the runs that one worker has written.
//
//	mem  | key | key | key |     free     | mark | mark | mark |
//
// A mark has the offset of a record in its file and the record's first bytes.
// There is one for each stride bytes of a run. When the memory is full, every
// other mark goes and the stride doubles.

package extsort

import "unsafe"

type mark struct {
	at  int64  // of the record, in the file
	key uint32 // of its bytes, in mem
	n   uint32
}

const (
	markBytes     = 16
	maxKeyBytes   = 256      // of a record that a mark keeps
	strideOfIndex = 32 << 10 // bytes, to begin with
)

type index struct {
	mem    []byte
	keys   int // bytes
	n      int // marks
	stride int64
	due    int64  // from here on in the file
	runs   []*run // whose marks are here, in order
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

// begin adds a run, which the marks that follow are of.
func (x *index) begin(r *run) {
	r.x, r.firstMark, r.endMark = x, x.n, x.n
	x.runs = append(x.runs, r)
	x.due = r.from
}

// add adds a mark to the last run, if one is due.
func (x *index) add(at int64, key []byte) {
	if at >= x.due {
		x.mark(at, key)
	}
}

func (x *index) mark(at int64, key []byte) {
	key = key[:min(len(key), maxKeyBytes)]
	r := x.runs[len(x.runs)-1]
	for x.keys+len(key)+(x.n+1)*markBytes > len(x.mem) {
		if x.due = at + 2*x.stride; !x.thin() {
			return
		}
		if x.n > r.firstMark {
			if x.due = x.at(x.n-1).at + x.stride; at < x.due {
				return
			}
		}
	}
	x.n++
	*x.at(x.n - 1) = mark{at: at, key: uint32(x.keys), n: uint32(copy(x.mem[x.keys:], key))}
	x.keys += len(key)
	x.due = at + x.stride
	r.endMark = x.n
}

// thin drops every other mark of each run, and reports whether that made room.
func (x *index) thin() bool {
	x.stride *= 2
	before := x.n
	n, keys := 0, 0
	for _, r := range x.runs {
		from := n
		for i := r.firstMark; i < r.endMark; i += 2 {
			m := *x.at(i)
			copy(x.mem[keys:], x.mem[m.key:][:m.n])
			m.key = uint32(keys)
			keys += int(m.n)
			*x.at(n) = m
			n++
		}
		r.firstMark, r.endMark = from, n
	}
	x.n, x.keys = n, keys
	return n < before
}
