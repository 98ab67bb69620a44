// Buffer: the memory of a region until the region is written.
//
//	free --open--> open --full--> sealed --written--> free
//
// A goroutine in Append reserves room under Store.mu, and copies its record without a lock. Then it
// sets the bit of the record's first unit in ready. Readers read only records whose bit is set. So
// a reader with an outdated place never reads a record that is being copied there.

package disk

import (
	"sync"
	"sync/atomic"
)

type buffer struct {
	mem  []byte        // off-heap
	seq  atomic.Uint64 // of the region in the buffer, or 0
	pins sync.RWMutex  // held shared by readers, and exclusively to make the buffer free

	used, count int             // bytes and number of records; guarded by Store.mu, fixed once sealed
	filling     sync.WaitGroup  // calls of Append that copy
	ready       []atomic.Uint64 // a bit for each unit
}

// begin makes b, a free buffer, the buffer of an empty region.
func (b *buffer) begin(seq uint64) {
	b.used, b.count = 0, 0
	for i := range b.ready {
		b.ready[i].Store(0)
	}
	b.seq.Store(seq)
}

// add reserves room for a record, and adds an entry to the table. The caller holds Store.mu.
func (b *buffer) add(hash uint64, size int) (off int, ok bool) {
	if b.used+size+(b.count+1)*entryBytes+footerBytes > len(b.mem) {
		return 0, false
	}
	entry{hash, b.used, size}.put(entryAt(b.mem, b.count))
	off = b.used
	b.used += size
	b.count++
	b.filling.Add(1)
	return off, true
}

// fill copies r to the room that add reserved.
func (b *buffer) fill(r *Record, off, size int) {
	r.put(b.mem[off : off+size])
	unit := off / UnitBytes
	b.ready[unit/64].Or(1 << (unit % 64))
	b.filling.Done()
}

// read is Store.Read for the record at an offset in b. The caller holds b.pins.
func (b *buffer) read(dst []byte, off int, key []byte) ([]byte, Meta, error) {
	unit := off / UnitBytes
	if b.ready[unit/64].Load()&(1<<(unit%64)) == 0 {
		return dst, Meta{}, ErrOverwritten
	}
	r, _ := recordIn(b.mem[off:])
	return r.to(dst, key)
}

// release makes b free once its readers have finished.
func (b *buffer) release() {
	b.pins.Lock()
	b.seq.Store(0)
	b.pins.Unlock()
}
