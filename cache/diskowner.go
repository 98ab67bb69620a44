// Disk owner: the calls by which the store rewrites and forgets records.

package cache

import (
	"weak"

	"github.com/freehold-go/freehold/internal/disk"
)

// An owner is the disk.Owner of a cache's store. Its reference to the cache is weak, so that the
// store does not keep a dropped cache alive.
type owner struct{ weak.Pointer[Cache] }

// locked calls f with the tier of a hash, under the lock of its shard.
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

// Priority returns 1 for a record that was hit since it was written, and 0 for all others.
func (o owner) Priority(h uint64, at disk.Place) (n int) {
	o.locked(h, func(t *tier) {
		if slot := t.find(h, at); slot != nil && diskSlot(slot.Load())&diskHit != 0 {
			n = 1
		}
	})
	return n
}

// Rewrite rewrites a record, unless it has expired or the index no longer refers to it.
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

// Forget removes the slot of a record whose region is to be overwritten.
func (o owner) Forget(h uint64, at disk.Place) {
	o.locked(h, func(t *tier) {
		t.full = true
		if slot := t.find(h, at); slot != nil {
			t.part(h).Remove(slot)
			t.evicted++
		}
	})
}

// ForgetRange removes the slots of all records at from <= place < to.
func (o owner) ForgetRange(from, to disk.Place) {
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
