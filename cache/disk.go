// Disk: Options.Disk, its figures, and the store that the tiers of all shards share.

package cache

import (
	"log/slog"
	"math/rand/v2"
	"weak"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/disk"
	"github.com/freehold-go/freehold/internal/hash"
)

const bufferShare = 8 // the buffers take 1/bufferShare of Options.MaxBytes, outside of it

// A Disk is a second, larger tier of a cache, in a file on an SSD. The cache writes entries that it
// evicts from memory to the file. A read that misses in memory reads the file, and brings the entry
// back to memory. All calls mean the same as without a disk, with the exceptions in docs/caches.md:
// for example, All and Snapshot see only the entries in memory.
//
// Entries larger than about 1 MiB are not written to disk.
//
// Each entry on disk takes about 11 bytes of memory, within Options.MaxBytes. If that is short, old
// entries leave the disk. The buffers take more, outside of Options.MaxBytes: an eighth of it, from
// 4 to 16 MiB, and 1 MiB for the writer. With a file of 8 MiB they take 4 MiB together. While a call
// reads an entry from the disk, it takes memory for that too.
//
// Get waits about 0.1 ms if it reads the disk, and may block a thread. Delete, Add, Replace,
// CompareAndSet, Update and Touch of a key that is on disk also wait. Set and Put never do: if the
// disk falls behind, entries that leave memory are lost, and DiskStats.Dropped counts them.
//
// Close writes the buffered entries and an index of the entries on disk. The entries in memory are
// lost without a snapshot. The next New with the same Dir finds the entries on disk again. The tier
// begins empty after a crash, or if these have changed: Options.Format, the size of the file,
// whether Options.Access is set, or whether RefreshAfter is. It also begins empty if another
// Options.MaxBytes or number of processors gives the cache more shards. New logs why, to the default
// logger of log/slog.
//
// Only Close closes the file. A cache that is dropped without Close keeps the file locked until the
// process ends.
//
// If the disk fails, the tier turns itself off and logs an error, and the cache goes on in memory:
// see DiskStats.Off. New does the same if it cannot open the files.
type Disk struct {
	// Dir is the directory of the files freehold.disk and freehold.disk.index. It must exist. One
	// cache at a time may use it.
	Dir string

	// MaxBytes bounds the size of the file, from 8 MiB to 256 GiB. New allocates the disk space.
	// The file has a header of 4 KiB and then whole MiB, so 8 MiB have room for 7 MiB of entries.
	MaxBytes int64

	// MinValue is the size of the smallest value that is written to disk, in bytes. A small entry
	// takes as much of the index as a large one, and a read of it takes as long. New panics if
	// MinValue is negative.
	MinValue int
}

// DiskStats are the figures of a cache's disk tier.
type DiskStats struct {
	Items       int   // entries on disk, including expired ones and those that memory has too
	FileBytes   int64 // the size of the file
	IndexBytes  int   // memory of the index, within Options.MaxBytes
	BufferBytes int   // memory of the buffers, outside of Options.MaxBytes

	Hits         uint64 // reads that found the entry on disk alone, also if GetContext left before
	Written      uint64 // entries written: an entry counts each time that it goes to disk
	WrittenBytes uint64 // bytes written to the file, including entries that were rewritten
	Rejected     uint64 // entries that left memory and were not to be written: see docs/caches.md
	Dropped      uint64 // entries that left memory and were lost: no free buffer, no index memory, Off
	Evicted      uint64 // entries that left the disk for room, or because the index had no memory
	Errors       uint64 // entries lost: damaged, a failed read, or Off

	Off error // why the disk is not used, or nil
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

// openDisk opens the store, and loads the index of the last clean stop. After an error, which it
// logs, the shards have no tiers.
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

// newDiskSeed gives the cache a random seed that the index file can have.
func (c *Cache) newDiskSeed() {
	c.seed = hash.SeedOf([3]uint64{rand.Uint64(), rand.Uint64(), rand.Uint64()})
}

// closeDisk closes the store, which writes the index file by saveDisk.
func (c *Cache) closeDisk() {
	if c.disk == nil {
		return
	}
	if err := c.disk.Close(c.saveDisk); err != nil {
		slog.Error("freehold: the cache's disk tier will begin empty", "dir", c.options.Disk.Dir, "error", err)
	}
}

// addDisk sets the figures that the store has. The tiers add theirs by addTo.
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
	st.Disk.Dropped += t.dropped
	st.Disk.Evicted += t.evicted
	st.Disk.Errors += t.errors
}
