// Read: one record, from a buffer or the file.
//
// A region may be overwritten at any time, since readers hold no lock. A reader loads the region's
// sequence number before it reads, and the checksum covers that number. So bytes of another lap of
// the ring, or of two laps, have a wrong checksum, and then the reader looks at the sequence number
// again: it tells an overwritten record from a damaged one.

package disk

import "errors"

// Errors of Read, for errors.Is. Each means that the record cannot be had. All other errors are of
// the disk, or of the parent for lack of memory. The store counts each kind.
var (
	// ErrOverwritten says that the region was overwritten meanwhile. The owner may refer to another
	// place by now: it should look again, at most a few times.
	ErrOverwritten = errors.New("freehold: the record is overwritten")

	// ErrOtherKey says that the record at this place is whole and has another key.
	ErrOtherKey = errors.New("freehold: the record has another key")

	// ErrDamaged says that the bytes are not those that were written.
	ErrDamaged = errors.New("freehold: the record is damaged")

	// ErrOff says that the store is closed, or has turned itself off.
	ErrOff = errors.New("freehold: the disk tier is off")
)

// Read appends the value of the record at a place to dst, and returns its Meta. size is the
// record's Size or more: an owner may know it only roughly. Read reads size bytes from the disk,
// once, or takes the record from memory if its region is not yet written. If Read returns an error,
// dst has its old length.
//
// Read verifies the checksum, which covers place and region, and the whole key. So a value is never
// a wrong one, but a record may have been replaced or deleted while it was read: the owner must
// check its index afterwards if that matters.
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
	seq := s.latest(index, s.opened.Load())
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
		break // it is written meanwhile
	}
	size = min(max(size, HeadBytes), s.region-off)
	from := s.offset(index) + int64(off)
	skip := int(from & int64(s.align-1))
	mem, err := s.parent.Alloc((skip+size+s.align-1)&^(s.align-1), s.align)
	if err != nil {
		s.counts.noMemory.Add(1)
		return dst, Meta{}, err
	}
	defer s.parent.Free(mem)
	if err := s.readFull(s.readAt, mem, from-int64(skip)); err != nil {
		return dst, Meta{}, err
	}
	r, ok := verified(mem[skip:skip+size], s.position(seq, off))
	if ok {
		return r.to(dst, key)
	}
	if s.latest(index, s.opened.Load()) != seq {
		return dst, Meta{}, ErrOverwritten
	}
	return dst, Meta{}, ErrDamaged
}

// Life returns a number that changes when the region of a place is overwritten. An owner that
// refers to the same place in the same life, before and after a Read, has the same record there.
// The number never repeats while the store is open.
func (s *Store) Life(at Place) uint64 {
	index, _, ok := s.locate(at)
	if !ok {
		return 0
	}
	return s.latest(index, s.opened.Load())
}

// to appends r's value to dst if r has the key.
func (r *Record) to(dst, key []byte) ([]byte, Meta, error) {
	if string(r.Key) != string(key) {
		return dst, Meta{}, ErrOtherKey
	}
	return append(dst, r.Value...), r.Meta, nil
}
