// Restore: adds the entries of a snapshot while the cache is in use. snapshot.go has the format.
//
//	head --> marks of each shard begin --> blocks of entries --> marks end
//	                                       error: delete all entries without a mark

package cache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"

	"github.com/freehold-go/freehold"
)

// Restore adds the entries of a snapshot that have not expired. If there is no room for all, it
// evicts some, and leaves out kept ones. It leaves out entries larger than MaxEntry. Restored
// entries get new versions, above all versions in the snapshot. Restore reads r up to the
// snapshot's end, and not beyond.
//
// The cache may be in use meanwhile. A key that another call has written, deleted or cleared since
// Restore began is not restored, and neither are a few keys with similar hashes. For this, Restore
// takes 1/1024 of MaxBytes on the Go heap until it returns.
//
// After an error in the head of the snapshot, such as [ErrForeign], the cache is as before. A later
// error is [ErrCorrupt], [ErrTruncated], or an error of r or of Set. After it, the cache has only
// the entries that other calls have written since Restore began, and a few with similar hashes.
func (c *Cache) Restore(r io.Reader) error {
	c.base.MustBeOpen(&kind, "Restore")
	rest, err := c.beginRestore(r)
	if err != nil {
		return err
	}
	return rest()
}

// BeginRestore is Restore in two steps, for programs that serve while entries are added. It reads
// the head of the snapshot, and returns the errors of that, such as [ErrForeign]: the cache is then
// as before. If err is nil, call rest once, on any goroutine, before Close: it adds the entries. Keys
// that are written after BeginRestore are not restored.
func (c *Cache) BeginRestore(r io.Reader) (rest func() error, err error) {
	c.base.MustBeOpen(&kind, "BeginRestore")
	return c.beginRestore(r)
}

func (c *Cache) beginRestore(r io.Reader) (rest func() error, err error) {
	if err := c.restoreHead(r); err != nil {
		return nil, err
	}
	rs := &restorer{c: c, marks: make([]*marks, len(c.shards))}
	for i := range c.shards {
		rs.marks[i] = c.shards[i].loads.beginRestore(int(c.bound.now.Load()) / len(c.shards))
	}
	return func() error {
		defer forAll(c.shards, rs.end) // also if r or OnEvict panics
		err := rs.entries(r)
		if err != nil {
			forAll(c.shards, rs.undo)
		}
		return err
	}, nil
}

// A restorer is a Restore that adds entries.
type restorer struct {
	c     *Cache
	marks []*marks // by shard
}

// entries adds all entries. It ends early if the cache is cleared.
func (rs *restorer) entries(r io.Reader) error {
	var block bytes.Buffer
	for number := uint64(1); ; number++ {
		if rs.c.shards[0].loads.wasCleared(rs.marks[0]) {
			return nil
		}
		if err := readBlock(r, number, mostBlock, &block); err != nil {
			return err
		}
		restored, err := rs.block(block.Bytes())
		if err != nil || block.Len() == highestBytes {
			return err
		}
		if number == 1 {
			rs.c.expect(r, block.Len(), restored)
		}
	}
}

// expect grows the index for all entries of a snapshot, if r is a file: an index that grows entry by
// entry is always nearly full, and most Inserts move other slots. The number of entries follows from
// the size of the file and from the first block, which had blockBytes and restored entries. A shard
// that is half full is left alone.
func (c *Cache) expect(r io.Reader, blockBytes, restored int) {
	f, ok := r.(interface{ Stat() (fs.FileInfo, error) })
	if !ok || restored == 0 {
		return
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	n := info.Size() / int64(len(c.shards)) * int64(restored) / int64(blockBytes)
	for i := range c.shards {
		c.shards[i].expectEntries(n, restored, blockBytes)
	}
}

func (s *shard) expectEntries(n int64, restored, blockBytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fit := s.limit * restored / blockBytes; s.available() > s.limit/2 {
		s.growIndex(int(min(n, int64(fit))))
	}
}

// undo deletes the entries of a shard that were not written since the Restore began, and all of its
// entries on disk.
func (rs *restorer) undo(s *shard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tier.clear()
	for i := range s.index.Buckets() {
		b := s.index.Bucket(i)
		for j := range b.Slots {
			at := &b.Slots[j]
			w := slot(at.Load())
			if w == 0 {
				continue
			}
			it := s.segs.itemAt(w.place())
			if s.loads.mayRestore(rs.marks[s.number], s.c.seed.Bytes(it.key())) {
				s.delete(pinned{at: at, w: w, it: it})
			}
		}
	}
}

// end ends the Restore in a shard. It returns the memory of an index that expect made too large.
func (rs *restorer) end(s *shard) {
	s.loads.endRestore(rs.marks[s.number])
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shrinkIndex(math.MaxInt, Room)
}

// restoreHead reads everything before the entries.
func (c *Cache) restoreHead(r io.Reader) error {
	head := make([]byte, len(snapshotMagic)+4)
	if _, err := io.ReadFull(r, head); err != nil {
		return endedEarly(err, ErrForeign)
	}
	if string(head[:len(snapshotMagic)]) != snapshotMagic {
		return ErrForeign
	}
	if v := binary.LittleEndian.Uint32(head[len(snapshotMagic):]); v != snapshotVersion {
		return fmt.Errorf("%w: its format is version %d, and this release reads version %d", ErrForeign, v, snapshotVersion)
	}
	var first bytes.Buffer
	if err := readBlock(r, 0, max(len(c.options.Format), blockBytes), &first); err != nil {
		return err
	}
	if got := first.String(); got != c.options.Format {
		return fmt.Errorf("%w: its Options.Format is %q, and this cache's is %q", ErrForeign, got, c.options.Format)
	}
	return nil
}

// mostBlock is the length of the largest block: the last entry of a block has up to maxEntryBytes.
const mostBlock = blockBytes + entryHeadBytes + maxEntryBytes

// readBlock reads a block of up to most bytes. It takes memory as bytes arrive, whatever length the
// block claims.
func readBlock(r io.Reader, number uint64, most int, block *bytes.Buffer) error {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return endedEarly(err, ErrTruncated)
	}
	length := binary.LittleEndian.Uint32(head[:])
	if int64(length) > int64(most) {
		return fmt.Errorf("%w: block %d has %d bytes, more than %d", ErrCorrupt, number, length, most)
	}
	block.Reset()
	if _, err := io.CopyN(block, r, int64(length)); err != nil {
		return endedEarly(err, ErrTruncated)
	}
	if checksum(number, block.Bytes()) != binary.LittleEndian.Uint32(head[4:]) {
		return fmt.Errorf("%w: block %d", ErrCorrupt, number)
	}
	return nil
}

// endedEarly returns early if err says that the reader ended, else err.
func endedEarly(err, early error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return early
	}
	return err
}

// block stores a block's entries, with versions above the block's highest. It returns the number of
// entries that have not expired.
func (rs *restorer) block(b []byte) (restored int, err error) {
	if len(b) < highestBytes {
		return 0, ErrCorrupt
	}
	highest := binary.LittleEndian.Uint64(b)
	if highest > math.MaxInt64 { // above all versions that the clock can give
		return 0, ErrCorrupt
	}
	c := rs.c
	c.raise(highest)
	var keys [batchKeys][]byte
	var writes [batchKeys]restoredWrite
	n := 0
	for b = b[highestBytes:]; len(b) > 0; {
		if len(b) < entryHeadBytes {
			return restored, ErrCorrupt
		}
		keyBytes := uint64(binary.LittleEndian.Uint16(b))
		rank := binary.LittleEndian.Uint16(b[2:])
		size := keyBytes + uint64(binary.LittleEndian.Uint32(b[4:]))
		if size > uint64(len(b)-entryHeadBytes) {
			return restored, ErrCorrupt
		}
		e := Entry{Flags: binary.LittleEndian.Uint64(b[8:]), Kept: rank&keptRank != 0}
		expires, hasTime := c.clock.fromUnix(binary.LittleEndian.Uint64(b[16:]))
		b = b[entryHeadBytes:]
		key := b[:keyBytes]
		e.Value, b = b[keyBytes:size], b[size:]
		if !hasTime {
			continue
		}
		restored++
		e.TTL = c.clock.left(expires)
		keys[n], writes[n] = key, restoredWrite{e, expires, rank}
		if n++; n == batchKeys {
			if err := rs.store(keys[:], writes[:]); err != nil {
				return restored, err
			}
			n = 0
		}
	}
	return restored, rs.store(keys[:n], writes[:n])
}

// A restoredWrite is an entry of a snapshot.
type restoredWrite struct {
	e       Entry
	expires uint32 // the second, or 0 for never
	rank    uint16
}

// store stores at most batchKeys entries. It waits for the memory of several at once.
func (rs *restorer) store(keys [][]byte, writes []restoredWrite) error {
	c := rs.c
	hashes := c.prefetch(keys)
	for i := range writes {
		r := &writes[i]
		w := c.newWrite(hashes[i], keys[i], &r.e, r.expires)
		w.restored, w.rank = rs.marks[c.shardOf(w.h).number], r.rank
		if _, err := c.storeOrDelete(&w); err != nil && !errors.Is(err, ErrTooLarge) && !(w.kept && errors.Is(err, freehold.ErrOutOfMemory)) {
			return err
		}
	}
	return nil
}

// RestoreFile is Restore from the file at path.
func (c *Cache) RestoreFile(path string) error {
	c.base.MustBeOpen(&kind, "RestoreFile")
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := c.Restore(f); err != nil {
		return &os.PathError{Op: "restore", Path: path, Err: err}
	}
	return nil
}
