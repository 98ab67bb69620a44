// Read: the read of one record, from a buffer or the file.
//
// Readers of the file take no lock that delays the writer, so a region may be overwritten while it
// is read. A reader loads the region's sequence number before it reads. The checksum covers that
// number, so bytes of another lap of the ring, or of two laps, fail the check. The reader then
// loads the sequence number again. If it has changed, the record was overwritten, else it is
// damaged.

package disk

import (
	"errors"
	"unsafe"
)

// Errors of Read, for errors.Is. Read also returns errors of the disk. Stats counts all but ErrOff.
var (
	// ErrOverwritten says that the region has been overwritten. The owner's index may have another
	// place by now: the owner should search it again, at most a few times.
	ErrOverwritten = errors.New("freehold: the record is overwritten")

	// ErrOtherKey says that the record at the place is intact and has another key.
	ErrOtherKey = errors.New("freehold: the record has another key")

	// ErrDamaged says that the bytes at the place fail the checksum. If the owner no longer refers
	// to the place, nothing may be damaged: the region may have other records by now.
	ErrDamaged = errors.New("freehold: the record is damaged")

	// ErrOff says that the store is closed, or has turned itself off.
	ErrOff = errors.New("freehold: the disk tier is off")
)

// Read appends the value of the record at a place to dst, and returns its Meta. size must be the
// record's Size or more: the owner may round it up. Read reads size bytes of the file at once. If
// the region is not yet written, Read copies the record from its buffer. If Read returns an error,
// dst has its old length.
//
// Read verifies the checksum and compares the whole key, so it never returns the value of another
// key. The record may have been replaced or deleted meanwhile, so the owner must check its index
// afterwards.
func (s *Store) Read(dst []byte, at Place, size int, key []byte) ([]byte, Meta, error) {
	s.reading.RLock()
	defer s.reading.RUnlock()
	if s.ended || s.off.Load() != nil {
		return dst, Meta{}, ErrOff
	}
	s.counts.reads.Add(1)
	dst, m, err := s.read(dst, at, size, key)
	switch err {
	case ErrOverwritten:
		s.counts.overwritten.Add(1)
	case ErrOtherKey:
		s.counts.otherKey.Add(1)
	case ErrDamaged:
		s.counts.damaged.Add(1)
	}
	return dst, m, err
}

// read is Read, but for the counts of errors.
func (s *Store) read(dst []byte, at Place, size int, key []byte) ([]byte, Meta, error) {
	index, off, ok := s.locate(at)
	if !ok {
		return dst, Meta{}, ErrOverwritten
	}
	seq := s.seqOf(index, s.opened.Load())
	if seq < s.first {
		return dst, Meta{}, ErrOverwritten
	}
	if b := s.pinBuffer(seq); b != nil {
		defer b.pins.RUnlock()
		s.counts.buffered.Add(1)
		return b.read(dst, off, key)
	}
	return s.readFile(dst, seq, off, size, key)
}

// pinBuffer returns the buffer of a region, with pins held shared, or nil if the region is written.
func (s *Store) pinBuffer(seq uint64) *buffer {
	for _, b := range s.buffers {
		if b.seq.Load() != seq {
			continue
		}
		b.pins.RLock()
		if b.seq.Load() == seq {
			return b
		}
		b.pins.RUnlock() // written meanwhile
		break
	}
	return nil
}

// readFile reads a record of a region that is written.
func (s *Store) readFile(dst []byte, seq uint64, off, size int, key []byte) ([]byte, Meta, error) {
	index := s.index(seq)
	size = min(size, s.region-off)
	from := s.offset(index) + int64(off)
	skip := int(from & int64(s.align-1))
	whole := (skip + size + s.align - 1) &^ (s.align - 1)
	mem, err := s.parent.Alloc(whole, s.align)
	if err == nil {
		defer s.parent.Free(mem)
	} else {
		s.counts.noMemory.Add(1)
		mem = aligned(whole, s.align)
	}
	if err := s.readFull(s.readAt, mem, from-int64(skip)); err != nil {
		return dst, Meta{}, err
	}
	r, ok := verified(mem[skip:skip+size], s.position(seq, off))
	if ok {
		return r.to(dst, key)
	}
	if s.seqOf(index, s.opened.Load()) != seq {
		return dst, Meta{}, ErrOverwritten
	}
	return dst, Meta{}, ErrDamaged
}

// aligned returns n bytes of the Go heap at a multiple of align, a power of two.
func aligned(n, align int) []byte {
	b := make([]byte, n+align)
	return b[-uintptr(unsafe.Pointer(unsafe.SliceData(b)))&uintptr(align-1):][:n]
}

// Seq returns the sequence number of the region at a place, or 0 for a place outside of the
// regions. It changes before the region is overwritten, and never repeats while the store is open.
// If Seq and the owner's reference to the place are unchanged after a Read, so is the record.
func (s *Store) Seq(at Place) uint64 {
	index, _, ok := s.locate(at)
	if !ok {
		return 0
	}
	return s.seqOf(index, s.opened.Load())
}

// to appends r's value to dst if r has the key.
func (r *Record) to(dst, key []byte) ([]byte, Meta, error) {
	if string(r.Key) != string(key) {
		return dst, Meta{}, ErrOtherKey
	}
	return append(dst, r.Value...), r.Meta, nil
}
