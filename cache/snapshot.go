// Snapshots: a stream of the entries, from which a cache restarts warm.
//
//	| "freehold" | "cache" 0 0 0 | 3, 4 B | first block | block | ... | last block |
//	block         length 4 B | checksum 4 B | content
//	first block   Options.Format
//	block         highest version 8 B | entries
//	entry         key's length 2 B | rank 2 B | value's length 4 B | flags 8 B | expires 8 B
//	              | key | value
//
// Numbers are little-endian, and times are seconds of Unix time, 0 for never. The rank says the
// queue and the hits of an entry, and whether it is kept, so that eviction goes on as before the
// restart. The last block has no entries: a stream without it was cut. A checksum is the CRC-32C of
// the number of the block (8 B), its length and its content.
//
// The highest version is an upper bound of the cache's versions when the block is written. Restored
// entries have higher ones. So no version from before a restart matches another state after it.
// restore.go reads the stream.

package cache

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

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

// Snapshot writes all entries in memory that have not expired to w. The cache may be in use
// meanwhile. The snapshot has the old or the new state of an entry that another call changes. It may
// miss an entry whose slot the index moves. A slow w delays no other call, but the segment of the
// entry that w takes cannot be reused until then. Snapshot returns the error of w.
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

// SnapshotFile is Snapshot to the file at path. The new file replaces an old one once it is
// complete: after an error the old file is as before. A pipe, a device or a descriptor, such as
// /dev/stdout, is written in place. SnapshotFile does not wait until the data is on disk.
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
