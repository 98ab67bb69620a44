// Store: a record for each string, and an array of record offsets by id.
//
//	record   | id 4 B | size 1 B | bytes | 0 to 3 B |              up to 247 bytes
//	         | id 4 B | 255, 3 B | length 8 B | address 8 B |      longer: a block of its own
//
// Records begin at multiples of 4 B, in chunks that never move. Offsets count words of 4 B. refs
// holds the record's offset for each id. A record never crosses chunks.
//
// With reference counting, counts holds a word for each id. Free ids form a list through their
// counts. Free records form a list for each size (segregated fit) through their first words:
//
//	id       live: refs = offset, counts = references
//	         free: refs = none,   counts = next free id, or none

package intern

import (
	"fmt"
	"math"
	"math/bits"
	"sync/atomic"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/chunks"
	"github.com/freehold-go/freehold/internal/container"
	"github.com/freehold-go/freehold/internal/poison"
)

const (
	none = math.MaxUint32 // neither an id nor an offset

	isLong    = 255                          // the size field of long records
	prefix    = 5                            // bytes of a record before its string
	maxRecord = 63                           // words; so each size has a bit in a uint64
	maxShort  = maxRecord*wordBytes - prefix // bytes in a record
	longWords = 6
)

// A chunk has room for any record, and no short record has the size isLong.
const (
	_ = uint(1<<firstBits - maxRecord)
	_ = uint(isLong - 1 - maxShort)
)

// record is a string of up to maxShort bytes, or the beginning of a longRecord.
type record struct {
	id    uint32 // of a free record, the offset of the next one
	size  uint8
	first [3]byte
}

// longRecord has 64-bit fields in two halves, since records are aligned to 4 B.
type longRecord struct {
	record
	len, addr [2]uint32
}

func split(v uint64) [2]uint32 { return [2]uint32{uint32(v), uint32(v >> 32)} }
func join(v [2]uint32) uint64  { return uint64(v[0]) | uint64(v[1])<<32 }

// store holds the records and ids.
//
// Invariants (check verifies them):
//   - refs of a live id is the offset of a record with that id
//   - live ids + free ids == ids
//   - bytes is the sum of the strings' lengths
type store struct {
	memory
	records words
	refs    words
	counts  words // empty unless counted
	counted bool
	poison  bool // free records are poisoned, except for their first words

	next, end uint32 // [next, end) is the free part of the last chunk
	bytes     int
	longs     int // strings with blocks of their own

	freeID  uint32                // the newest free id, or none
	freeIDs uint32                // number of free ids
	free    [maxRecord + 1]uint32 // the newest free record of each size in words, or none
	sizes   uint64                // bit w is set if free[w] is a record

	// ids is the number of ids ever handed out. It is stored after all data of the last id.
	ids atomic.Uint32
}

func (s *store) init(parent freehold.Allocator, counted bool) {
	s.parent, s.counted, s.poison, s.freeID = parent, counted, poison.On(), none
	for i := range s.free {
		s.free[i] = none
	}
}

// recordWords returns the size in words of the record for a string of n bytes.
func recordWords(n int) uint32 {
	if n > maxShort {
		return longWords
	}
	return uint32(prefix+n+wordBytes-1) / wordBytes
}

// add stores text, which is new, with one reference. It returns the record's offset. On an error
// only the memory reserved for the next strings may have grown.
func (s *store) add(text string) (at uint32, err error) {
	need := recordWords(len(text))
	if err := s.reserve(need); err != nil {
		return none, err
	}
	var block uintptr
	if len(text) > maxShort {
		b, err := s.parent.Alloc(len(text), 1)
		if err != nil {
			return none, container.Refused(err)
		}
		s.reserved.Add(int64(len(text)))
		copy(b, text)
		block = addrOf(b)
	}
	at, id := s.takeRecord(need), s.takeID()
	r := s.record(at)
	r.id = id
	if len(text) > maxShort {
		r.size = isLong
		l := r.long()
		l.len, l.addr = split(uint64(len(text))), split(uint64(block))
		s.longs++
	} else {
		r.size = uint8(len(text))
		copy(r.short(len(text)), text)
	}
	s.bytes += len(text)
	*s.refs.word(id) = at
	if s.counted {
		*s.counts.word(id) = 1
	}
	if id == s.ids.Load() {
		s.ids.Store(id + 1)
	}
	return at, nil
}

// reserve makes room for an id and a record of the given words.
func (s *store) reserve(need uint32) error {
	ids := uint(s.ids.Load())
	if s.freeID == none && ids >= s.refs.cap() {
		if ids >= maxWords {
			return fmt.Errorf("%w: %d strings have all ids", freehold.ErrOutOfMemory, ids)
		}
		if err := s.refs.grow(&s.memory); err != nil {
			return err
		}
	}
	if s.counted && s.freeID == none && ids >= s.counts.cap() {
		if err := s.counts.grow(&s.memory); err != nil {
			return err
		}
	}
	if s.end-s.next >= need || s.fit(need) != 0 {
		return nil
	}
	used := s.records.used
	if chunks.Start(used, firstBits) >= maxWords {
		return fmt.Errorf("%w: the strings take 16 GiB, which is all that offsets reach", freehold.ErrOutOfMemory)
	}
	if err := s.records.grow(&s.memory); err != nil {
		return err
	}
	s.next = uint32(chunks.Start(used, firstBits))
	s.end = uint32(min(chunks.Start(used+1, firstBits), maxWords))
	return nil
}

// takeID returns an id. reserve has made room for it.
func (s *store) takeID() uint32 {
	id := s.freeID
	if id == none {
		return s.ids.Load()
	}
	s.freeID = *s.counts.word(id)
	s.freeIDs--
	return id
}

// fit returns the words of the smallest free record that can be cut to need words, or 0.
func (s *store) fit(need uint32) uint32 {
	sizes := s.sizes >> need << need &^ (1 << (need + 1)) // a rest of one word would be no record
	if sizes == 0 {
		return 0
	}
	return uint32(bits.TrailingZeros64(sizes))
}

// takeRecord returns the offset of need words. reserve has made room for them.
func (s *store) takeRecord(need uint32) uint32 {
	size := s.fit(need)
	if size == 0 {
		at := s.next
		s.next += need
		return at
	}
	at := s.free[size]
	s.free[size] = s.record(at).id
	if s.free[size] == none {
		s.sizes &^= 1 << size
	}
	if s.poison {
		s.claim(at, size)
	}
	if size > need {
		s.freeRecord(at+need, size-need)
	}
	return at
}

// freeRecord puts a record of size words on the free list of its size.
func (s *store) freeRecord(at, size uint32) {
	if s.poison {
		poison.Leave(s.rest(at, size))
	}
	s.record(at).id = s.free[size]
	s.free[size] = at
	s.sizes |= 1 << size
}

// claim panics if a free record was written to.
func (s *store) claim(at, size uint32) {
	if i := poison.Take(s.rest(at, size)); i >= 0 {
		arg.Panicf("intern", "byte %d of the memory of a string was written after the string was freed", i)
	}
}

// remove frees the string of id, which is live.
func (s *store) remove(id uint32) {
	at := *s.refs.word(id)
	r := s.record(at)
	n := len(r.text())
	if r.size == isLong {
		s.freeLong(r.long())
	}
	s.bytes -= n
	s.freeRecord(at, recordWords(n))
	*s.refs.word(id) = none
	*s.counts.word(id) = s.freeID
	s.freeID = id
	s.freeIDs++
}

func (s *store) freeLong(l *longRecord) {
	s.memory.free(uintptr(join(l.addr)), int(join(l.len)))
	s.longs--
}

// value returns the string of id, and whether id is live.
func (s *store) value(id ID) (string, bool) {
	if uint32(id) >= s.ids.Load() {
		return "", false
	}
	at := *s.refs.word(uint32(id))
	if at == none {
		return "", false
	}
	return s.record(at).text(), true
}

// live returns the number of strings.
func (s *store) live() int { return int(s.ids.Load()) - int(s.freeIDs) }

// close frees all memory.
func (s *store) close() {
	for id := uint32(0); s.longs > 0; id++ {
		if at := *s.refs.word(id); at != none {
			if r := s.record(at); r.size == isLong {
				s.freeLong(r.long())
			}
		}
	}
	for size, at := range s.free {
		for ; at != none && s.poison; at = s.record(at).id {
			s.claim(at, uint32(size))
		}
	}
	s.ids.Store(0)
	s.records.free(&s.memory)
	s.refs.free(&s.memory)
	s.counts.free(&s.memory)
	s.next, s.end, s.bytes, s.freeIDs, s.sizes = 0, 0, 0, 0, 0
	s.init(s.parent, s.counted)
}
