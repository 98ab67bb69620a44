// Disk index: the index file, which has the indexes of all shards from a clean stop to the next
// start.
//
//	| format of the file 4 B | length of Options.Format 4 B, its bytes | seed 3 * 8 B
//	| highest version 8 B | newest place 4 B | extra bytes 4 B | shards 4 B | parts of a shard 4 B
//	| for each part of each shard: number of slots 8 B, slots
//
// Numbers are little-endian. The store verifies a checksum of the file. A slot has 27 bits of its
// key's hash, and the numbers of its part and its shard are further bits. The others are not known.
// So a cache with more shards begins empty, and a shard has no more parts than in the file.

package cache

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/freehold-go/freehold/internal/cuckoo"
	"github.com/freehold-go/freehold/internal/disk"
	"github.com/freehold-go/freehold/internal/hash"
)

const diskFormat = 2 // of the index file

func (c *Cache) saveDisk(w io.Writer) error {
	b := bufio.NewWriterSize(w, 64<<10)
	put4 := func(n int) { b.Write(binary.LittleEndian.AppendUint32(b.AvailableBuffer(), uint32(n))) }
	put8 := func(n uint64) { b.Write(binary.LittleEndian.AppendUint64(b.AvailableBuffer(), n)) }
	put4(diskFormat)
	put4(len(c.options.Format))
	b.WriteString(c.options.Format)
	for _, n := range c.seed.Numbers() {
		put8(n)
	}
	put8(c.highestVersion())
	put4(int(c.disk.Newest()))
	first := c.shards[0].tier
	put4(first.extraBytes())
	put4(len(c.shards))
	put4(len(first.parts))
	for i := range c.shards {
		c.shards[i].mu.Lock()
		t := c.shards[i].tier
		for j := range t.parts {
			put8(uint64(t.parts[j].Len()))
			t.each(&t.parts[j], func(_ uint64, w diskSlot) bool {
				put8(uint64(w))
				return true
			})
		}
		c.shards[i].mu.Unlock()
	}
	return b.Flush()
}

// errOtherDisk says that a cache with other options has written the index file.
var errOtherDisk = errors.New("the disk tier is of a cache with other options")

func (c *Cache) loadDisk(r io.Reader) error {
	b := bufio.NewReaderSize(r, 64<<10)
	var err error
	get := func(n int) uint64 {
		var room [8]byte
		if err == nil {
			_, err = io.ReadFull(b, room[:n])
		}
		return binary.LittleEndian.Uint64(room[:])
	}
	if v := get(4); v != diskFormat {
		return fmt.Errorf("%w: its index has format %d", errOtherDisk, v)
	}
	if n := get(4); n != uint64(len(c.options.Format)) {
		return fmt.Errorf("%w: another Options.Format", errOtherDisk)
	}
	format := make([]byte, len(c.options.Format))
	if _, err := io.ReadFull(b, format); err != nil || string(format) != c.options.Format {
		return fmt.Errorf("%w: another Options.Format", errOtherDisk)
	}
	c.seed = hash.SeedOf([3]uint64{get(8), get(8), get(8)})
	highest, newest := get(8), disk.Place(get(4))
	first := c.shards[0].tier
	extra, shards, parts := get(4), get(4), get(4)
	if err != nil || extra != uint64(first.extraBytes()) || shards < uint64(len(c.shards)) || parts == 0 {
		return fmt.Errorf("%w: %d shards of %d parts", errOtherDisk, shards, parts)
	}
	c.raise(highest)
	for i := range c.shards {
		t := c.shards[i].tier
		t.newest, t.parts = newest, t.parts[:min(parts, uint64(len(t.parts)))]
	}
	for shard := range shards {
		for part := range parts {
			for range get(8) {
				w := diskSlot(get(8))
				if err != nil {
					return err
				}
				c.shardOf(shard<<32).tier.loadSlot(uint64(w.tag())|part<<cuckoo.TagBits, w)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// loadSlot inserts a slot of the index file. h has the known bits of the key's hash.
func (t *tier) loadSlot(h uint64, w diskSlot) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if !t.hasBuckets(t.part(h)) {
		t.evicted++
		return
	}
	t.insert(h, w)
}
