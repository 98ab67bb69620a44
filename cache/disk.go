// Disk: Options.Disk, and the store that the tiers of all shards share.

package cache

import (
	"log/slog"
	"math/rand/v2"
	"weak"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/disk"
	"github.com/freehold-go/freehold/internal/hash"
)

const bufferShare = 8 // buffers take Options.MaxBytes/bufferShare more

// A Disk is a second, larger tier of a cache, in a file on an SSD. The cache writes entries that it
// evicts from memory to the file, and reads that miss in memory read the file. All calls mean the
// same as without a disk, with the exceptions in the guide, docs/caches.md: for example, All and
// Snapshot see the entries in memory only.
//
// Entries larger than about 1 MiB are not written to disk.
//
// Each entry on disk takes about 11 bytes of memory, within Options.MaxBytes. If that is short, old
// entries on disk are dropped. The buffers of the file take an eighth of Options.MaxBytes more, and
// 1 MiB: together at least 5 MiB, or 4 for a file of 8 MiB, and at most 17.
//
// Get waits about 0.1 ms if it reads the disk, and may block a thread. Delete, Add, Replace,
// CompareAndSet, Update and Touch of a key that is on disk also wait. Set and Put never do.
//
// Close writes the buffered entries and an index of the entries on disk. The next New with the same
// Dir and Options.Format finds the entries again. The tier begins empty after a crash, if the size
// of the file has changed, or if Options.Access or RefreshAfter is newly set or unset. It also
// begins empty if another Options.MaxBytes or number of processors gives the cache more shards. A
// line of log/slog's default logger says why.
//
// Only Close closes the file. A cache that is dropped without Close keeps the file locked until the
// process ends.
//
// If the disk fails, the tier turns itself off, logs an error to log/slog's default logger, and the
// cache goes on in memory: see DiskStats.Off. New does the same if it cannot open the files.
type Disk struct {
	// Dir is the directory of the files freehold.disk and freehold.disk.index. It must exist. One
	// cache at a time may use it.
	Dir string

	// MaxBytes bounds the size of the file, from 8 MiB to 256 GiB. New allocates the disk space.
	// The file has a header of 4 KiB and then whole MiB, so 8 MiB have room for 7 MiB of entries.
	MaxBytes int64

	// MinValue is the size of the smallest value that is written to disk, in bytes. In the index
	// and in the time of a read, a small entry costs as much as a large one. New panics if MinValue
	// is negative.
	MinValue int
}

// DiskStats are the figures of a cache's disk tier.
type DiskStats struct {
	Items       int   // entries on disk, including expired ones and those that memory has too
	FileBytes   int64 // the size of the file
	IndexBytes  int   // memory of the index, within Options.MaxBytes
	BufferBytes int   // memory of the buffers, outside of Options.MaxBytes

	Hits         uint64 // of Stats.Hits: reads that found the entry on disk only
	Written      uint64 // entries written, each time that they leave memory and are not on disk
	WrittenBytes uint64 // bytes written to the file, including entries that were written again
	Rejected     uint64 // entries that left memory and are not to be written: see the guide
	Dropped      uint64 // entries that left memory and were lost: no free buffer, no index memory, Off
	Evicted      uint64 // entries dropped from the disk for room, or because the index has no memory
	Errors       uint64 // entries lost: damaged, a failed read, or Off

	Off error // the error because of which the disk is not used, or nil
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

// openDisk opens the store, and loads the index of the last clean stop. On an error it logs, and
// the cache has no tiers.
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

// newDiskSeed gives the cache a random seed that can be written to the index file.
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

// An owner is the store's disk.Owner. Its reference to the cache is weak, so that the store does
// not keep a dropped cache alive.
type owner struct{ weak.Pointer[Cache] }

// locked calls f with the tier of a hash, under its shard's lock.
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

// Worth returns 1 for a record that was hit since it was written, and 0 for all others.
func (o owner) Worth(h uint64, at disk.Place) (n int) {
	o.locked(h, func(t *tier) {
		if slot := t.find(h, at); slot != nil && diskSlot(slot.Load())&diskHit != 0 {
			n = 1
		}
	})
	return n
}

// Rewrite writes a record again, unless it has expired or the index does not refer to it any more.
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

// Leave removes the slot of a record whose region is to be overwritten.
func (o owner) Leave(h uint64, at disk.Place) {
	o.locked(h, func(t *tier) {
		t.full = true
		if slot := t.find(h, at); slot != nil {
			t.part(h).Remove(slot)
			t.evicted++
		}
	})
}

// Lost removes the slots of all records at from <= place < to.
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

// addDisk sets the figures of the store. The tiers add theirs by addTo.
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
