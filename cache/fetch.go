// Fetch: reads of entries on disk, and their promotion to memory.
//
//	load, without the lock --> validate, under it --> promote
//
// An image is an item in a buffer of the Go heap, made from a record. Calls read an image as they
// read an item.
//
// # Why readers miss no entry
//
// A reader searches memory and then the disk, without a lock. An entry that goes to disk gets its
// disk slot before its item's slot is removed. An entry that goes to memory gets its item's slot
// before its disk slot is removed, and forget makes the sequence counter of the disk index odd
// meanwhile. So a miss is valid if the counters of both indexes were even before the search and are
// unchanged after it.
//
// A record that was read is valid only if its slot is still there under the lock, and if its place
// was not reused (disk.Store.Seq).

package cache

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/disk"
)

// A diskCopy has the slots whose records load has read for a key, and an image if one has the key.
type diskCopy struct {
	it   *item // the image, in buf, or nil
	buf  *[]byte
	seen [mostCandidates]loadedSlot
	n    int // the number of seen; the last one is the image's, if there is one
}

// images is a pool of buffers for images.
var images = sync.Pool{New: func() any { return new([]byte) }}

// done returns the buffer to images. The image must not be used after it.
func (c *diskCopy) done() {
	if c.buf != nil {
		images.Put(c.buf)
	}
}

// A loadedSlot is a slot whose record load has read.
type loadedSlot struct {
	w   diskSlot // without diskHit
	seq uint64   // disk.Store.Seq of its place
}

// load reads the record of key to c, without a lock. It removes slots whose records cannot be read.
// It reports whether there were slots with the key's tag.
func (t *tier) load(h uint64, key []byte, c *diskCopy) (any bool) {
	c.it, c.n = nil, 0
	words, n := t.slots(h)
	if n > 0 && c.buf == nil {
		c.buf = images.Get().(*[]byte)
	}
	for _, w := range words[:n] {
		x := loadedSlot{w &^ diskHit, t.store.Seq(w.place())}
		t.s.c.seam.At(diskSlotSeen)
		it, err := t.read(w, key, c.buf)
		t.s.c.seam.At(diskRead)
		if err != nil && !errors.Is(err, disk.ErrOtherKey) {
			t.lose(h, x)
			continue
		}
		c.seen[c.n] = x
		c.n++
		if c.it = it; it != nil {
			break
		}
	}
	return n > 0
}

// read reads a record to buf, which it enlarges as needed, and returns its image.
func (t *tier) read(w diskSlot, key []byte, buf *[]byte) (*item, error) {
	from, extra := t.shape.keyOffset()+len(key), t.extraBytes()
	if cap(*buf) < from+w.bytes() {
		*buf = make([]byte, from+w.bytes())
	}
	b, meta, err := t.store.Read((*buf)[:from], w.place(), w.bytes(), key)
	if err != nil {
		return nil, err
	}
	*buf = b
	if len(b) < from+extra {
		return nil, disk.ErrDamaged
	}
	clock := &t.s.c.clock
	it := (*item)(unsafe.Pointer(unsafe.SliceData(b)))
	it.valueBytes, it.keyBytes, it.shape = uint32(len(b)-from-extra), uint16(len(key)), t.shape
	it.expires.Store(clock.unfixed(meta.Expires))
	copy(it.key(), key)
	binary.NativeEndian.PutUint64(it.flagsAt(), meta.Flags)
	binary.NativeEndian.PutUint64(it.versionAt(), meta.Version)
	rest := b[from:]
	if at := it.access(); at != nil {
		at.Store(clock.unfixed(binary.LittleEndian.Uint32(rest)) | access(rest[accessBytes])*wasRead)
		rest = rest[accessBytes+1:]
	}
	if at := it.due(); at != nil {
		at.Store(clock.unfixed(binary.LittleEndian.Uint32(rest)))
	}
	if extra > 0 {
		copy(b[from:], b[from+extra:])
	}
	return it, nil
}

// lose removes the slot of a record that could not be read, and counts the entry in
// DiskStats.Errors. It is a no-op if the record was overwritten, as the slot is gone then.
func (t *tier) lose(h uint64, x loadedSlot) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if at := t.stillAt(h, x); at != nil {
		t.part(h).Remove(at)
		t.errors++
	}
}

// stillAt returns the slot of x if it still refers to the record that was read, or nil.
func (t *tier) stillAt(h uint64, x loadedSlot) *atomic.Uint64 {
	at := t.find(h, x.w.place())
	if at == nil || t.store.Seq(x.w.place()) != x.seq {
		return nil
	}
	return at
}

// validate checks under the lock what load has read to c without it. It returns the image of key and
// its slot, or the zero pinned if the key is not on disk. ok is false if slots have changed since
// the read, so that the caller must read again. After mostTries, validate forgets the slots instead.
//
// Precondition: the caller holds the lock, and the key has no item in memory.
func (t *tier) validate(h uint64, c *diskCopy, tries int) (r pinned, at *atomic.Uint64, ok bool) {
	if c.it != nil {
		if at = t.stillAt(h, c.seen[c.n-1]); at != nil && c.it.hasExpired(&t.s.c.clock) {
			t.part(h).Remove(at)
			return pinned{}, nil, true
		} else if at != nil {
			return pinned{it: c.it}, at, true
		}
	}
	ix := t.part(h)
	found := ix.Search(tagOf(h))
	for at := ix.Next(&found); at != nil; at = ix.Next(&found) {
		w := diskSlot(at.Load()) &^ diskHit
		if w == 0 || slices.Contains(c.seen[:c.n], loadedSlot{w, t.store.Seq(w.place())}) {
			continue
		}
		if tries < mostTries {
			return pinned{}, nil, false
		}
		t.forget(h)
		t.evicted++
		break
	}
	return pinned{}, nil, true
}

// fetch returns the item of a key that was not in memory. If promotes is set, it brings the entry to
// memory and returns the pinned item there. Otherwise, or if memory has no room, it returns an
// image, which has neither a slot nor a pin.
func (s *shard) fetch(h uint64, key []byte, promotes bool) pinned {
	t, ix := s.tier, s.tier.part(h)
	var c diskCopy
	for tries := 0; ; tries++ {
		moves, diskMoves := s.index.Moves(), ix.Moves()
		s.c.seam.At(readMoves)
		if r := s.scan(h, key, false); r.it != nil {
			return r
		}
		s.c.seam.At(diskSearch)
		if !t.load(h, key, &c) && (moves|diskMoves)&1 == 0 && s.index.Moves() == moves && ix.Moves() == diskMoves {
			return pinned{}
		}
		if r, ok := s.tryFetch(h, key, &c, tries, promotes); ok {
			if !r.isImage() {
				c.done()
			}
			return r
		}
	}
}

// fetchContext is fetch, but returns the error of ctx once ctx is done. The fetch then goes on in a
// goroutine.
func (s *shard) fetchContext(ctx context.Context, h uint64, key []byte) (pinned, error) {
	if _, n := s.tier.slots(h); n == 0 || ctx.Done() == nil {
		return s.fetch(h, key, true), nil
	}
	if err := ctx.Err(); err != nil {
		return pinned{}, err
	}
	key = bytes.Clone(key)
	found := make(chan pinned)
	_, end := s.c.refreshes.begin(ctx)
	go func() {
		defer end()
		r := s.fetch(h, key, true)
		select {
		case found <- r:
		case <-ctx.Done():
			s.unpin(r)
		}
	}()
	select {
	case r := <-found:
		return r, nil
	case <-ctx.Done():
		return pinned{}, ctx.Err()
	}
}

// orFetch returns r, the result of find, or the result of fetch if r is empty. It is inlined, and
// reads nothing that writers change.
func (c *Cache) orFetch(s *shard, r pinned, h uint64, key []byte, promotes bool) pinned {
	if r.it == nil && c.disk != nil {
		return s.fetch(h, key, promotes)
	}
	return r
}

// tryFetch is the part of fetch that holds the lock, after load. If fetch must load again, ok is
// false.
func (s *shard) tryFetch(h uint64, key []byte, c *diskCopy, tries int, promotes bool) (r pinned, ok bool) {
	s.lockFor(0)
	defer s.unlock()
	if r = s.scan(h, key, true); r.it != nil {
		return s.hold(r.at), true
	}
	r, at, ok := s.tier.validate(h, c, tries)
	if r.it == nil || !promotes {
		return r, ok
	}
	s.tier.hits++
	if w := at.Load(); diskSlot(w)&diskHit == 0 {
		at.Store(w | uint64(diskHit))
	}
	if s.promote(h, key, r) {
		r = s.hold(s.scan(h, key, true).at)
	}
	return r, true
}

// promote stores the entry of an image in memory, with its version, and reports whether it could.
// If reads change the expiry of entries, the record is outdated, and promote forgets its slot too.
func (s *shard) promote(h uint64, key []byte, r pinned) bool {
	c := s.c
	e := s.entryOf(r, c.accessTime())
	if s.c.isHuge(len(key)+len(e.Value)) || len(key)+len(e.Value) > c.maxEntry() {
		return false
	}
	w := c.newWrite(h, key, &e, r.it.expires.Load())
	if at := r.it.due(); at != nil {
		w.due = at.Load()
	}
	w.keeps = true
	if !c.readsSetTTL {
		w.shape |= promoted
	}
	s.growIndex(1)
	_, err := s.put(&w, r)
	return err == nil
}

// lockKey locks the shard as lockFor does. It returns the item of key, or an image if the entry is
// on disk alone, and whether the entry is live. It reads the disk without the lock.
func (s *shard) lockKey(h uint64, key []byte, size int) (old pinned, found bool) {
	var c diskCopy
	for tries, ok := 0, false; ; tries++ {
		if old, found, ok = s.tryKey(h, key, size, &c, tries); ok {
			return old, found
		}
		s.tier.load(h, key, &c)
	}
}

// tryKey is the part of lockKey that locks, after load. If lockKey must load again, ok is false and
// the shard is not locked.
func (s *shard) tryKey(h uint64, key []byte, size int, c *diskCopy, tries int) (old pinned, found, ok bool) {
	s.lockFor(size)
	defer func() {
		if !ok { // also if OnEvict panics
			s.unlock()
		}
	}()
	if old, found = s.current(h, key); old.it == nil && s.tier != nil {
		old, _, ok = s.tier.validate(h, c, tries)
		return old, old.it != nil, ok
	}
	return old, found, true
}

// isImage reports whether r is an image of a record.
func (r pinned) isImage() bool { return r.it != nil && r.at == nil }
