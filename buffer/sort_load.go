// Load: a key that is a fixed part of each record is read without calling the user.
//
// Calling a function for each of the ten times that a sort looks at a key would cost
// more than all the rest. So one pass compares what key returns with what a
// load would, for every record; if it is always the same, then the load is the key.

package buffer

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// A load reads up to 8 bytes of a record as a number.
type load struct {
	at     uintptr // of the 8 bytes that are read
	little bool    // the byte order
	left   uint8   // shifts, which drop bytes of other fields
	right  uint8
	flip   uint64
}

func (l *load) word(record unsafe.Pointer) uint64 {
	w := binary.BigEndian.Uint64((*[8]byte)(unsafe.Add(record, l.at))[:])
	if l.little {
		w = bits.ReverseBytes64(w)
	}
	return w<<(l.left&63)>>(l.right&63) ^ l.flip
}

// littleEndian is the byte order of the words of entries.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// newLoad returns the load of n bytes at an offset of records of at least 8 bytes.
func newLoad(size, at, n int, little bool) load {
	l := load{at: uintptr(min(at, size-8)), little: little, right: uint8(64 - 8*n)}
	before := at - int(l.at)
	if little {
		before = 8 - n - before
	}
	l.left = uint8(8 * before)
	return l
}

// findLoads returns the loads that read the key of every record, 8 bytes each, or
// false if there are none.
func (s *sorter) findLoads() ([]load, bool) {
	if s.number != nil {
		l, ok := s.findNumber()
		return []load{l}, ok && s.every(func(record []byte) bool {
			return l.word(unsafe.Pointer(unsafe.SliceData(record))) == s.number(record)
		})
	}
	at, n := s.part(s.layout.record(s.data))
	if at < 0 || !s.every(func(record []byte) bool {
		a, m := s.part(record)
		return a == at && m == n
	}) {
		return nil, false
	}
	var loads []load
	for ; n > 0; at, n = at+8, n-8 {
		loads = append(loads, newLoad(s.layout.fixed, at, min(n, 8), false))
	}
	return loads, true
}

// part returns which part of a record is its key, or -1 if the key is not in it.
func (s *sorter) part(record []byte) (at, n int) {
	key := s.key(record)
	if len(key) == 0 {
		return 0, 0
	}
	from := uintptr(unsafe.Pointer(&key[0])) - uintptr(unsafe.Pointer(&record[0]))
	if from >= uintptr(len(record)) || len(key) > len(record)-int(from) {
		return -1, 0
	}
	return int(from), len(key)
}

// findNumber returns a load that reads the numbers of some records. The first record
// tells what to XOR.
func (s *sorter) findNumber() (load, bool) {
	const samples = 64
	size := s.layout.fixed
	step := max(1, len(s.data)/size/samples) * size
	for _, n := range []int{8, 4} {
		for at := range size - n + 1 {
			for _, little := range []bool{false, true} {
				l := newLoad(size, at, n, little)
				l.flip = l.word(unsafe.Pointer(&s.data[0])) ^ s.number(s.data[:size:size])
				if n < 8 && l.flip>>(8*n) != 0 {
					continue
				}
				same := true
				for i := 0; same && i < len(s.data); i += step {
					same = l.word(unsafe.Pointer(&s.data[i])) == s.number(s.data[i:i+size:i+size])
				}
				if same {
					return l, true
				}
			}
		}
	}
	return load{}, false
}

// every reports whether f is true of all records.
func (s *sorter) every(f func(record []byte) bool) bool {
	var other atomic.Bool
	s.together(len(s.cuts)-1, func(i int) {
		size := s.layout.fixed
		for data := s.data[s.cuts[i]:s.cuts[i+1]]; len(data) > 0; data = data[size:] {
			if other.Load() || s.stop.Load() {
				return
			}
			if !f(data[:size:size]) {
				other.Store(true)
			}
		}
	})
	return !other.Load()
}
