// Table: extendible hashing from a string's hash to its record.
//
//	hash of 32 bits   | directory | place in the segment ...
//	                       |
//	directory         | segment, segment, segment, ... |       a power of two of entries
//	                       |
//	segment           | head | slot slot slot ... | spare slots | none |
//
// A segment uses open addressing with linear probing, with the slots in the order of their hashes.
// All its hashes begin with the same bits. A hash has a home, in proportion to its place in the
// segment's range of hashes. Its slot is at home or later, with no free slot between. So a search
// walks from home to the first greater hash, and growth copies a segment from one end to the other
// without a look at a string.
//
// A segment of more than maxSegmentBytes is split by the next bit of the hash. If the directory has
// a single entry for it, the directory doubles. So an insertion copies at most one segment, and
// sometimes the directory: 16 B for each 1,600 strings or more.

package intern

import "math"

const (
	hashBits  = 32
	slotBytes = 8
	headBytes = 16

	maxSegmentBytes = 32 << 10
	minHomes        = 16
	stride          = 4   // slots that a search compares at a time
	maxSpare        = 32  // the most slots beyond the homes, unless fill needs more
	minPerEntry     = 256 // the least strings per directory entry for it to double
)

// slot is a hash in the high half and an offset in the low half.
type slot uint64

const noSlot slot = math.MaxUint64 // no offset is that large

func slotFor(hash, at uint32) slot { return slot(hash)<<32 | slot(at) }

func (s slot) hash() uint32 { return uint32(s >> 32) }
func (s slot) at() uint32   { return uint32(s) }

// entry is a segment in the directory.
type entry struct {
	slots uintptr // address of the first slot
	homes uint32
	depth uint32 // number of leading bits that all hashes of the segment share
}

// home returns the index of the first slot where a hash may be.
func (e *entry) home(hash uint32) uint64 { return uint64(hash<<e.depth) * uint64(e.homes) >> hashBits }

// head is in front of a segment's slots.
//
// Invariants (check verifies them):
//   - used <= most <= homes <= total-2*stride
//   - the slots in use ascend, each at or after its home with no free slot between
//   - the last stride slots are free, so that a search ends in the segment
type head struct {
	used  uint32 // slots in use
	most  uint32 // the segment grows beyond it
	total uint32 // all slots
	_     uint32
}

// table finds records by their strings.
type table struct {
	directory []entry // nil before init and after close
	depth     uint32  // len(directory) == 1<<depth
	first     [1]entry
	used      int // slots in use
	work      int // slots and entries that growth has written, for tests
}

// noSlots is the segment of an empty table.
var noSlots = [...]slot{0, 0, // a head of zeros, which lets it grow at once
	noSlot, noSlot, noSlot, noSlot}

func (t *table) init() {
	*t = table{}
	t.first[0] = entry{slots: addrOfSlots(noSlots[headBytes/slotBytes:])}
	t.directory = t.first[:]
}

// find returns text's record, or nil.
func (t *table) find(s *store, hash uint32, text string) *record {
	i := uint64(hash) >> ((hashBits - t.depth) & 63)
	if i >= uint64(len(t.directory)) {
		return nil // not made, or closed
	}
	e := &t.directory[i]
	for p := e.search(hash); ; p++ {
		v := e.slot(p)
		if v.hash() != hash || v == noSlot {
			return nil
		}
		if r := s.record(v.at()); r.has(text) {
			return r
		}
	}
}

// search returns the index of the first slot from home on whose hash is not less than hash. It
// compares four slots at a time and counts the lesser ones. A loop that ended at the first such
// slot would be a branch that processors mispredict, and they would find out only when the load
// completes.
func (e *entry) search(hash uint32) uint64 {
	for p := e.home(hash); ; p += stride {
		w := e.stride(p)
		n := less(w[0], hash) + less(w[1], hash) + less(w[2], hash) + less(w[3], hash)
		if n < stride {
			return p + n
		}
	}
}

// less returns 1 if the hash of v is less than hash, else 0.
func less(v slot, hash uint32) uint64 { return (uint64(v>>32) - uint64(hash)) >> 63 }

// room is a place for a new slot at p: the slots [p, free) move up by one.
type room struct {
	entry   *entry
	p, free int
}

// makeRoom finds room for another slot of a hash, and grows the table if there is none. On an error
// the table is unchanged. The room is valid until the next makeRoom or remove.
func (t *table) makeRoom(m *memory, hash uint32) (room, error) {
	for {
		e := &t.directory[hash>>(hashBits-t.depth)]
		if r, ok := e.room(hash); ok {
			return r, nil
		}
		if err := t.grow(m, hash); err != nil {
			return room{}, err
		}
	}
}

// room returns the place for a new slot of a hash. It reports false if the segment must grow first.
func (e *entry) room(hash uint32) (room, bool) {
	if h := e.head(); h.used >= h.most {
		return room{}, false
	}
	slots := e.all()
	p := int(e.search(hash))
	free := p
	for slots[free] != noSlot {
		free++
	}
	return room{e, p, free}, free < len(slots)-stride
}

// insert puts a slot into the room that makeRoom returned.
func (t *table) insert(r room, hash, at uint32) {
	slots := r.entry.all()
	copy(slots[r.p+1:r.free+1], slots[r.p:r.free])
	slots[r.p] = slotFor(hash, at)
	r.entry.head().used++
	t.used++
}

// has reports whether the table has a slot with a hash and an offset.
func (t *table) has(hash, at uint32) bool {
	e := &t.directory[hash>>(hashBits-t.depth)]
	for p := e.search(hash); ; p++ {
		switch v := e.slot(p); {
		case v.hash() != hash || v == noSlot:
			return false
		case v.at() == at:
			return true
		}
	}
}

// remove removes the slot of a hash and an offset, which must exist. Later slots move back towards
// their homes (backward-shift deletion).
func (t *table) remove(hash, at uint32) {
	e := &t.directory[hash>>(hashBits-t.depth)]
	slots := e.all()
	p := int(e.search(hash))
	for slots[p] != slotFor(hash, at) {
		p++
	}
	for ; slots[p+1] != noSlot && int(e.home(slots[p+1].hash())) <= p; p++ {
		slots[p] = slots[p+1]
	}
	slots[p] = noSlot
	e.head().used--
	t.used--
}

// close frees all memory.
func (t *table) close(m *memory) {
	for i := 0; i < len(t.directory); {
		e := &t.directory[i]
		i += 1 << (t.depth - e.depth)
		t.freeSegment(m, *e)
	}
	t.freeDirectory(m)
	*t = table{}
}

func (t *table) freeSegment(m *memory, e entry) {
	if total := e.head().total; total > 0 {
		m.free(e.slots-headBytes, headBytes+int(total)*slotBytes)
	}
}

func (t *table) freeDirectory(m *memory) {
	if len(t.directory) > 1 {
		m.free(addrOfEntries(t.directory), len(t.directory)*entryBytes)
	}
}
