// Disk: Options.Disk, the store that the tiers of all shards share, and its index between a clean
// stop and the next start.
//
//	version 4 B | format's length 4 B, format | seed 3 * 8 B | highest version 8 B | newest place 4 B
//	| extra bytes 4 B | shards 4 B | parts 4 B | for each part of each shard: slots' number 8 B, slots
//
// Numbers are little-endian. The store verifies a checksum of all this. A slot has 27 bits of its
// key's hash, and the numbers of its part and shard have the others that are known. So a cache with
// more shards or parts begins empty.

package cache

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"weak"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/cuckoo"
	"github.com/freehold-go/freehold/internal/disk"
	"github.com/freehold-go/freehold/internal/hash"
)

// A Disk is a second, larger tier of a cache, in a file on an SSD. Entries that are evicted from
// memory are written there, and reads that find no entry in memory read it there. All calls mean
// the same as without a disk, with the exceptions in the guide, docs/caches.md: for example, All
// and Snapshot see the entries in memory only.
//
// Entries larger than about 1 MiB are not written to disk.
//
// Each entry on disk takes about 11 bytes of memory, within Options.MaxBytes. If that is short, the
// oldest entries on disk are dropped. The buffers of the file take an eighth of MaxBytes more, at
// least 5 and at most 17 MiB.
//
// A Get that reads the disk waits for it, about 0.1 ms, and may block a thread. Delete, Add, Replace,
// CompareAndSet, Update and Touch of a key that is on disk also wait. Set and Put never do.
//
// Close writes the buffered entries, and the next New with the same Dir and Options.Format finds the
// entries on disk again. After a crash it begins empty. New also begins empty if the file's size has
// changed, if Options.Access or RefreshAfter is newly set or unset, or if the bound or the number of
// processors has become larger, so that the cache has more shards.
//
// Only Close closes the file: a cache that is dropped without it keeps the file locked until the
// process ends.
//
// If the disk fails, the tier turns itself off, with an error to log/slog's default logger, and the
// cache goes on in memory: see DiskStats.Off. So does New if it cannot open the files.
type Disk struct {
	// Dir is the directory, which must exist, of the files freehold.disk and freehold.disk.index.
	// One cache at a time may use it.
	Dir string

	// MaxBytes bounds the size of the file, from 8 MiB to 256 GiB. New allocates it on disk. The
	// file has a header of 4 KiB and then whole MiB, so 8 MiB have room for 7 MiB of entries.
	MaxBytes int64

	// MinValue is the size of the smallest value that is written to disk, in bytes. A small entry
	// takes the memory of a large one in the index, and the time of its read. Negative values
	// panic.
	MinValue int
}

// DiskStats are the figures of a cache's disk tier.
type DiskStats struct {
	Items       int   // entries on disk, also those that are in memory too, and expired ones
	FileBytes   int64 // the size of the file
	IndexBytes  int   // of memory, within MaxBytes
	BufferBytes int   // of memory, outside of MaxBytes

	Hits         uint64 // of Stats.Hits: reads that found the entry on disk only
	Written      uint64 // entries written
	WrittenBytes uint64 // to the file, with those that were written again to keep them
	Rejected     uint64 // entries that were evicted from memory, and not written; see the guide
	Evicted      uint64 // entries dropped from the disk for room, or since the index has no memory
	Errors       uint64 // entries lost by a failed read, damaged bytes, or a disk that is off

	Off error // why the disk is not used any more, or nil
}

func (d *Disk) check(o *Options) {
	const call = "cache.New"
	if d.Dir == "" {
		arg.Panicf(call, "Options.Disk without a Dir")
	}
	if d.MaxBytes < disk.MinBytes || d.MaxBytes > disk.MaxBytes {
		arg.Panicf(call, "Options.Disk.MaxBytes %d, want %d to %d", d.MaxBytes, int64(disk.MinBytes), int64(disk.MaxBytes))
	}
	if d.MinValue < 0 {
		arg.Panicf(call, "Options.Disk.MinValue %d, want 0 or more", d.MinValue)
	}
	if o.Collect {
		arg.Panicf(call, "Options.Disk together with Collect: only Close writes the index")
	}
	if o.KeepAll {
		arg.Panicf(call, "Options.Disk together with KeepAll, which evicts nothing")
	}
}

// openDisk begins the disk tier.
func (c *Cache) openDisk() {
	d := *c.options.Disk
	c.options.Disk = &d
	for i := range c.shards {
		c.shards[i].tier = newTier(&c.shards[i], d.MaxBytes)
	}
	c.newDiskSeed()
	store, warm, err := disk.Open(disk.Options{
		Dir: d.Dir, MaxBytes: d.MaxBytes, Parent: c.base.Parent, Owner: owner{weak.Make(c)}, Logger: slog.Default(),
		BufferBytes: c.options.MaxBytes / bufferShare, Load: c.loadDisk,
	})
	if err != nil {
		slog.Error("freehold: the cache goes on without its disk tier", "dir", d.Dir, "error", err)
		c.diskOff = err
	}
	if !warm {
		c.newDiskSeed()
	}
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		if !warm {
			s.tier.clear()
		}
		if s.tier.store = store; err != nil {
			s.used -= s.tier.chunks() * c.segmentBytes
			s.tier.close()
			s.tier = nil
		}
		s.mu.Unlock()
	}
	c.disk = store
}

// newDiskSeed gives the cache a seed that can be kept in a file.
func (c *Cache) newDiskSeed() {
	c.seed = hash.SeedOf([3]uint64{rand.Uint64(), rand.Uint64(), rand.Uint64()})
}

// closeDisk ends the disk tier, and keeps its index.
func (c *Cache) closeDisk() {
	if c.disk == nil {
		return
	}
	if err := c.disk.Close(c.saveDisk); err != nil {
		slog.Error("freehold: the cache's disk tier will begin empty", "dir", c.options.Disk.Dir, "error", err)
	}
}

const (
	diskFormat  = 2 // of the index
	bufferShare = 8 // of the bound: buffers take one part more
)

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

// each calls f with the slots of a part of the index, and the known bits of their hashes. It
// removes those for which f returns false.
func (t *tier) each(ix *cuckoo.Index, f func(h uint64, w diskSlot) bool) {
	for i := range ix.Buckets() {
		b := ix.Bucket(i)
		for j := range b.Slots {
			if w := diskSlot(b.Slots[j].Load()); w != 0 && !f(uint64(w.tag()), w) {
				ix.Remove(&b.Slots[j])
			}
		}
	}
}

// errOtherDisk says that a cache with other options has written the index.
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
	if err != nil || extra != uint64(first.extraBytes()) || shards < uint64(len(c.shards)) || parts < uint64(len(first.parts)) {
		return fmt.Errorf("%w: %d shards of %d parts", errOtherDisk, shards, parts)
	}
	c.raise(highest)
	for i := range c.shards {
		c.shards[i].tier.newest = newest
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
		}
	}
	return err
}

// loadSlot adds a slot of an earlier cache.
func (t *tier) loadSlot(h uint64, w diskSlot) {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if !t.hasBuckets(t.part(h)) {
		t.evicted++
		return
	}
	t.insert(h, w)
}

// An owner is the cache as the store sees it. It does not keep a cache that is dropped.
type owner struct{ weak.Pointer[Cache] }

// locked calls f with the tier of a hash, under its lock.
func (o owner) locked(h uint64, f func(t *tier)) {
	if c := o.Value(); c != nil {
		s := c.shardOf(h)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.tier != nil {
			f(s.tier)
		}
	}
}

// Worth returns 1 for a record that was hit since it was written.
func (o owner) Worth(h uint64, at disk.Place) (n int) {
	o.locked(h, func(t *tier) {
		if slot := t.find(h, at); slot != nil && diskSlot(slot.Load())&diskHit != 0 {
			n = 1
		}
	})
	return n
}

// Rewrite writes a record again.
func (o owner) Rewrite(at disk.Place, r *disk.Record) {
	o.locked(r.Hash, func(t *tier) {
		slot := t.find(r.Hash, at)
		if slot == nil || t.store == nil || r.Expires != 0 && t.s.c.clock.unfixed(r.Expires) <= t.s.c.clock.now() {
			return
		}
		if to, ok := t.store.Append(r); ok {
			t.newest = to
			slot.Store(uint64(diskSlotOf(tagOf(r.Hash), to, disk.Size(len(r.Key), len(r.Value)))))
		}
	})
}

// Leave forgets a record.
func (o owner) Leave(h uint64, at disk.Place) {
	o.locked(h, func(t *tier) {
		t.full = true
		if slot := t.find(h, at); slot != nil {
			t.part(h).Remove(slot)
			t.evicted++
		}
	})
}

// Lost forgets all records of some places.
func (o owner) Lost(from, to disk.Place) {
	c := o.Value()
	for i := 0; c != nil && i < len(c.shards); i++ {
		o.locked(uint64(i)<<32, func(t *tier) {
			for j := range t.parts {
				t.each(&t.parts[j], func(_ uint64, w diskSlot) bool {
					if w.place() < from || w.place() >= to {
						return true
					}
					t.errors++
					return false
				})
			}
		})
	}
}

// addDisk adds the figures of the disk tier.
func (c *Cache) addDisk(st *Stats) {
	st.Disk.Off = c.diskOff
	if c.disk == nil {
		return
	}
	d := c.disk.Stats()
	st.Disk.FileBytes, st.Disk.BufferBytes, st.Disk.WrittenBytes, st.Disk.Off = d.FileBytes, d.MemoryBytes, d.WrittenBytes, d.Off
}

func (t *tier) addTo(st *Stats) {
	st.Disk.Items += t.len()
	st.Disk.IndexBytes += t.chunks() * t.s.c.segmentBytes
	st.Disk.Hits += t.hits
	st.Disk.Written += t.written
	st.Disk.Rejected += t.rejected
	st.Disk.Evicted += t.evicted
	st.Disk.Errors += t.errors
}
