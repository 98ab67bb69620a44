// Read: one record, from a buffer or the file.
//
// Readers take no lock that delays the writer of the file, so a region may be overwritten while it
// is read. A reader loads the region's sequence number before it reads. The checksum covers that
// number, so bytes of another lap of the ring, or of two laps, fail the check. The reader then
// loads the sequence number again: if it has changed, the record was overwritten, else it is
// damaged.

package disk

import (
	"errors"
	"unsafe"
)

// Errors of Read, for errors.Is. Read also returns errors of the disk. The store counts all but
// ErrOff.
var (
	// ErrOverwritten says that the region has been overwritten. The owner may refer to another
	// place by now: it should look again, at most a few times.
	ErrOverwritten = errors.New("freehold: the record is overwritten")

	// ErrOtherKey says that the record at the place is intact and has another key.
	ErrOtherKey = errors.New("freehold: the record has another key")

	// ErrDamaged says that the bytes at the place fail the checksum. Nothing is damaged if the
	// owner has given the place up before Read, as the region may have other records by now.
	ErrDamaged = errors.New("freehold: the record is damaged")

	// ErrOff says that the store is closed, or has turned itself off.
	ErrOff = errors.New("freehold: the disk tier is off")
)

// Read appends the value of the record at a place to dst, and returns its Meta. size must be the
// record's Size or more: the owner may round it up. Read reads size bytes of the file at once, or
// copies the record from its buffer if the region is not yet written. If Read returns an error, dst
// has its old length.
//
// Read verifies the checksum and compares the whole key. So it never returns another key's value.
// The owner may have replaced or deleted the record meanwhile: it must check its index afterwards.
func (s *Store) Read(dst []byte, at Place, size int, key []byte) ([]byte, Meta, error) {
	s.life.RLock()
	defer s.life.RUnlock()
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

func (s *Store) read(dst []byte, at Place, size int, key []byte) ([]byte, Meta, error) {
	index, off, ok := s.locate(at)
	if !ok {
		return dst, Meta{}, ErrOverwritten
	}
	seq := s.seqOf(index, s.opened.Load())
	if seq < s.first {
		return dst, Meta{}, ErrOverwritten
	}
	for _, b := range s.buffers {
		if b.seq.Load() != seq {
			continue
		}
		b.pins.RLock()
		defer b.pins.RUnlock()
		if b.seq.Load() == seq {
			s.counts.buffered.Add(1)
			return b.read(dst, off, key)
		}
		break // written meanwhile
	}
	size = min(max(size, HeadBytes), s.region-off)
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

// Life returns the sequence number of the region at a place, or 0 for a place outside of the
// regions. It changes before the region is overwritten, and never repeats while the store is open.
// If Life and the owner's reference to the place are the same before and after a Read, the record
// is too.
func (s *Store) Life(at Place) uint64 {
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
