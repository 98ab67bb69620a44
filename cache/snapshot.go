// Snapshots: a stream of the entries, from which a cache restarts warm.
//
//	| "freehold" | "cache" 0 0 0 | 3, 4 B | first block | block | ... | last block |
//	block         length 4 B | checksum 4 B | content
//	first block   Options.Format
//	block         highest version 8 B | entries
//	entry         key's length 2 B | rank 2 B | value's length 4 B | flags 8 B | expires 8 B
//	              | key | value
//
// The rank has queue and hits of the entry, and whether it is kept, so that eviction goes on as
// before the restart. Numbers are little-endian, and times are seconds of Unix time, 0 for never.
// The last block has no entries. A checksum is the CRC-32C of the number of the block (8 B), its
// length and its content. So a stream that was cut, even between two blocks, is detected.
//
// The highest version is an upper bound of the cache's versions when the block is written. Restored
// entries have higher ones. So no version from before a restart matches another state after it.

package cache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"os"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/file/atomicfile"
)

// Errors of [Cache.Restore], for [errors.Is].
var (
	// ErrForeign says that the stream is not from a cache, that another release wrote it, or that
	// its cache had another [Options].Format. The cache is as before.
	ErrForeign = errors.New("not a snapshot of a cache of this kind")

	// ErrCorrupt says that the stream was damaged.
	ErrCorrupt = errors.New("corrupt snapshot")

	// ErrTruncated says that the stream ends too early.
	ErrTruncated = errors.New("truncated snapshot")
)

const (
	snapshotMagic   = "freeholdcache\x00\x00\x00"
	snapshotVersion = 3
	blockBytes      = 64 << 10 // an entry that fills a block to this size or more is its last
	highestBytes    = 8
	entryHeadBytes  = 24
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Snapshot writes all entries that have not expired to w, while the cache is in use. If an entry is
// written meanwhile, the snapshot may have its old or new state. It may miss an entry whose slot
// the index moves meanwhile. A slow w delays no other call, but entries that are being written stay
// in memory. Snapshot returns the error of w.
func (c *Cache) Snapshot(w io.Writer) error {
	c.base.MustBeOpen(&kind, "Snapshot")
	head := binary.LittleEndian.AppendUint32([]byte(snapshotMagic), snapshotVersion)
	if _, err := w.Write(head); err != nil {
		return err
	}
	out := blockWriter{w: w, block: make([]byte, highestBytes)}
	out.write([]byte(c.options.Format))
	for i := range c.shards {
		c.shards[i].each(func(slot) bool { return true }, func(r pinned) bool {
			out.add(r, rankOf(r.w, c.shards[i].isKept(r.w)), &c.clock)
			if len(out.block) >= blockBytes {
				out.flush(c.highestVersion())
			}
			return out.err == nil
		})
	}
	if len(out.block) > highestBytes {
		out.flush(c.highestVersion())
	}
	out.flush(c.highestVersion()) // the last one
	return out.err
}

// A blockWriter writes blocks, until an error.
type blockWriter struct {
	w      io.Writer
	number uint64
	block  []byte // highestBytes of room, and entries
	err    error
}

// add adds an entry to the block.
func (b *blockWriter) add(r pinned, rank uint16, c *clock) {
	it := r.it
	b.block = binary.LittleEndian.AppendUint16(b.block, it.keyBytes)
	b.block = binary.LittleEndian.AppendUint16(b.block, rank)
	b.block = binary.LittleEndian.AppendUint32(b.block, it.valueBytes)
	b.block = binary.LittleEndian.AppendUint64(b.block, it.flags())
	b.block = binary.LittleEndian.AppendUint64(b.block, c.unix(it.expires.Load()))
	b.block = append(append(b.block, it.key()...), it.value()...)
}

// flush writes the block, and begins an empty one. highest is at least every version in the block.
func (b *blockWriter) flush(highest uint64) {
	binary.LittleEndian.PutUint64(b.block, highest)
	b.write(b.block)
	b.block = b.block[:highestBytes]
}

// write writes content as a block.
func (b *blockWriter) write(content []byte) {
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(content)))
	head = binary.LittleEndian.AppendUint32(head, checksum(b.number, content))
	for _, part := range [...][]byte{head, content} {
		if b.err == nil {
			_, b.err = b.w.Write(part)
		}
	}
	b.number++
}

func checksum(number uint64, block []byte) uint32 {
	head := binary.LittleEndian.AppendUint64(nil, number)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(block)))
	return crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, block)
}

// Restore adds the entries of a snapshot that have not expired. If there is no room for all, the
// cache evicts some, and leaves out kept ones. Restore leaves out entries larger than MaxEntry.
// Restored entries get new versions, above all versions in the snapshot. Restore reads r up to the
// snapshot's end, and not beyond.
//
// The cache may be in use meanwhile. A key that another call has written, deleted or cleared since
// Restore began is not restored, and neither are a few keys whose hashes are like its. Restore
// takes 1/1024 of MaxBytes for this, on the Go heap.
//
// After an error that matches [ErrForeign], the cache is as before. After any other error it is
// empty: [ErrCorrupt], [ErrTruncated], or an error of r or of Set.
func (c *Cache) Restore(r io.Reader) error {
	c.base.MustBeOpen(&kind, "Restore")
	rest, err := c.beginRestore(r)
	if err != nil {
		return err
	}
	return rest()
}

// BeginRestore is Restore in two steps, for programs that serve while entries are added. It reads
// the head of the snapshot, and returns its errors, such as [ErrForeign]. Then rest adds the
// entries. Call it once, on any goroutine, before Close. Keys that are written after BeginRestore
// are not restored.
func (c *Cache) BeginRestore(r io.Reader) (rest func() error, err error) {
	c.base.MustBeOpen(&kind, "BeginRestore")
	return c.beginRestore(r)
}

func (c *Cache) beginRestore(r io.Reader) (rest func() error, err error) {
	if err := c.restoreHead(r); err != nil {
		if !errors.Is(err, ErrForeign) {
			c.Clear()
		}
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
			c.Clear()
		}
		return err
	}, nil
}

// A restorer is a Restore that adds entries. It has the marks of each shard.
type restorer struct {
	c     *Cache
	marks []*marks
}

// entries adds everything behind the head. It ends early if the cache is cleared.
func (rs *restorer) entries(r io.Reader) error {
	var block bytes.Buffer
	for number := uint64(1); ; number++ {
		if rs.c.shards[0].loads.wasCleared(rs.marks[0]) {
			return nil
		}
		if err := readBlock(r, number, &block); err != nil {
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

// expect grows the index for the entries behind the first block, if r is a file: an index that
// grows entry by entry is always nearly full, and most Inserts move other slots. restored is the
// number of entries in the block. A shard that is half full is left alone.
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

// end ends the Restore in a shard. It gives back the memory of an index that expect made too large.
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
	if err := readBlock(r, 0, &first); err != nil {
		return err
	}
	if got := first.String(); got != c.options.Format {
		return fmt.Errorf("%w: its Options.Format is %q, and this cache's is %q", ErrForeign, got, c.options.Format)
	}
	return nil
}

// readBlock reads a block. It takes memory as bytes arrive, whatever length the block claims.
func readBlock(r io.Reader, number uint64, block *bytes.Buffer) error {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return endedEarly(err, ErrTruncated)
	}
	length := binary.LittleEndian.Uint32(head[:])
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

// block stores a block's entries, with versions above the block's highest version. It
// returns the number of entries that have not expired.
func (rs *restorer) block(b []byte) (restored int, err error) {
	if len(b) < highestBytes {
		return 0, ErrCorrupt
	}
	highest := binary.LittleEndian.Uint64(b)
	if highest > math.MaxInt64 { // no clock comes to that
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

// A restoredWrite is an entry of a snapshot, the second at which it expires, and its rank.
type restoredWrite struct {
	e       Entry
	expires uint32
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

// SnapshotFile is Snapshot to the file at path. The new file replaces an old one once it is
// complete. A pipe, a device or a descriptor, such as /dev/stdout, is written in place.
// SnapshotFile does not wait until the data is on disk.
func (c *Cache) SnapshotFile(path string) error {
	c.base.MustBeOpen(&kind, "SnapshotFile")
	f, err := atomicfile.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := c.Snapshot(f); err != nil {
		return err
	}
	return f.Commit()
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
