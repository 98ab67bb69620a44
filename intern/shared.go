// Shared: a concurrent set, with one store and a table for each shard.
//
//	Intern    shard's lock { find it, or { store's lock { add it } } insert it }
//	Value     no lock
//
// The hash's low bits choose the shard. A shard's lock guards its table and the reference counts of
// its strings. The store's lock guards IDs and the memory for records, which all shards share. It
// is taken only for new and freed strings, inside a shard's lock. Records and the words of refs do
// not move, and are written before the ID is returned.

package intern

import (
	"iter"
	"sync"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/container"
	"github.com/freehold-go/freehold/internal/hash"
)

const numShards = 64

// Shared is a [Strings] for any goroutine. [NewShared] makes one.
//
// Value takes no lock: it costs the same as for Strings, with any number of writers. Intern and
// Lookup take one of 64 locks, by the hash, and Intern of a new string one more. BenchmarkShared
// measures them.
type Shared struct {
	base   container.Base // only Close changes it
	mu     sync.Mutex     // guards store; Value reads it without
	store  store
	seed   hash.Seed
	shards [numShards]shard
}

var sharedKind = container.Kind{Type: "intern.Shared", Maker: "intern.NewShared", Is: "the strings are", Shared: true}

// shard holds the strings whose hashes have the same low bits.
type shard struct {
	mu    sync.Mutex
	table table
	_     [shardBytes - (unsafe.Sizeof(sync.Mutex{})+unsafe.Sizeof(table{}))%shardBytes]byte
}

const shardBytes = 64 // shards are multiples of a cache line, against false sharing

// NewShared is [New] for any goroutine. The parent must be safe for concurrent use, as a
// [freehold.Heap] is; wrap another one in [freehold.NewLocked]. The struct has 10 KiB.
func NewShared(parent freehold.Allocator, o *Options) *Shared {
	if o == nil {
		o = &Options{}
	}
	s := &Shared{seed: hash.NewSeed()}
	container.Make(s, &s.base, &sharedKind, parent, o.Name)
	s.store.init(parent, o.RefCounts)
	for i := range s.shards {
		s.shards[i].table.init()
	}
	return s
}

// Intern is [Strings.Intern].
func (s *Shared) Intern(v string) (ID, error) {
	s.base.MustBeOpen(&sharedKind, "Intern")
	sh, h := s.shard(v)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if r := sh.table.find(&s.store, h, v); r != nil {
		s.store.retain(r.id)
		return ID(r.id), nil
	}
	room, err := sh.table.makeRoom(&s.store.memory, h)
	if err != nil {
		return 0, err
	}
	at, err := s.add(v)
	if err != nil {
		return 0, err
	}
	sh.table.insert(room, h, at)
	return ID(s.store.record(at).id), nil
}

func (s *Shared) add(v string) (at uint32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.add(v)
}

func (s *Shared) remove(id uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store.remove(id)
}

// InternBytes is [Strings.InternBytes].
func (s *Shared) InternBytes(b []byte) (ID, error) { return s.Intern(textOf(b)) }

// Lookup is [Strings.Lookup].
func (s *Shared) Lookup(v string) (ID, bool) {
	s.base.MustBeOpen(&sharedKind, "Lookup")
	sh, h := s.shard(v)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if r := sh.table.find(&s.store, h, v); r != nil {
		return ID(r.id), true
	}
	return 0, false
}

// LookupBytes is [Strings.LookupBytes].
func (s *Shared) LookupBytes(b []byte) (ID, bool) { return s.Lookup(textOf(b)) }

// Value is [Strings.Value]. With Options.RefCounts the caller must hold a reference.
func (s *Shared) Value(id ID) string {
	v, ok := s.store.value(id)
	if !ok {
		s.store.noString(&s.base, &sharedKind, "Value", id)
	}
	return v
}

// Retain is [Strings.Retain]. The caller must hold a reference.
func (s *Shared) Retain(id ID) {
	const call = "Retain"
	sh, h := s.shard(s.mustHave(call, id))
	s.retainIn(call, sh, h, id)
}

func (s *Shared) retainIn(call string, sh *shard, h uint32, id ID) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s.mustStillHave(call, sh, h, id)
	s.store.retain(uint32(id))
}

// Release is [Strings.Release]. The caller must hold the reference that it drops. If two calls drop
// the last reference concurrently, one panics.
func (s *Shared) Release(id ID) bool {
	const call = "Release"
	sh, h := s.shard(s.mustHave(call, id))
	return s.releaseIn(call, sh, h, id)
}

func (s *Shared) releaseIn(call string, sh *shard, h uint32, id ID) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s.mustStillHave(call, sh, h, id)
	if !s.store.release(uint32(id)) {
		return false
	}
	sh.table.remove(h, *s.store.refs.word(uint32(id)))
	s.remove(uint32(id))
	return true
}

// mustHave returns the string of an ID to which the caller has a reference.
func (s *Shared) mustHave(call string, id ID) string {
	s.base.MustBeOpen(&sharedKind, call)
	v, ok := s.store.value(id)
	if !ok {
		s.store.noString(&s.base, &sharedKind, call, id)
	}
	s.store.mustCount(&sharedKind, call)
	return v
}

// mustStillHave panics if the ID no longer has a string with the hash h: its last reference was
// dropped after mustHave. sh.mu is held.
func (s *Shared) mustStillHave(call string, sh *shard, h uint32, id ID) {
	if !sh.table.has(h, *s.store.refs.word(uint32(id))) {
		s.store.noString(&s.base, &sharedKind, call, id)
	}
}

// All is [Strings.All]. It holds no lock while the loop's body runs. With Options.RefCounts it
// holds a reference to the string meanwhile, and takes the shard's lock briefly before and after.
func (s *Shared) All() iter.Seq2[ID, string] {
	return func(yield func(ID, string) bool) {
		s.base.MustBeOpen(&sharedKind, "All")
		for id := ID(0); uint32(id) < s.store.ids.Load(); id++ {
			if !s.store.counted {
				if !yield(id, s.Value(id)) {
					return
				}
			} else if v, ok := s.hold(id); ok && !s.yieldHeld(yield, id, v) {
				return
			}
		}
	}
}

// yieldHeld calls yield, and drops a reference even if that panics.
func (s *Shared) yieldHeld(yield func(ID, string) bool, id ID, v string) bool {
	defer s.Release(id)
	return yield(id, v)
}

// hold returns the string of an ID, if there is one, and adds a reference.
func (s *Shared) hold(id ID) (v string, ok bool) {
	for {
		sh := s.shardOf(id)
		if sh == nil {
			return "", false
		}
		if v, ok = s.holdIn(sh, id); ok {
			return v, true
		}
	}
}

// holdIn is hold for an ID whose string was in sh. It reports false if the string is no longer
// there.
func (s *Shared) holdIn(sh *shard, id ID) (v string, ok bool) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if s.shardOf(id) != sh {
		return "", false
	}
	s.store.retain(uint32(id))
	return s.store.value(id)
}

// shardOf returns the shard of an ID's string, or nil if the ID has no string now.
func (s *Shared) shardOf(id ID) *shard {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.store.value(id)
	if !ok {
		return nil
	}
	sh, _ := s.shard(v)
	return sh
}

// Len returns the number of strings.
func (s *Shared) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.live()
}

// Stats returns the figures. It takes the lock for new strings.
func (s *Shared) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.stats(s.base.Name)
}

// Close is [Strings.Close]. No other call may be in progress.
func (s *Shared) Close() {
	if !s.base.MayClose(&sharedKind, s.store.reserved.Load() > 0) {
		return
	}
	for i := range s.shards {
		s.shards[i].table.close(&s.store.memory)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store.close()
	container.Closed(s, &s.base)
}

// shard returns the shard of v and the bits of its hash for the table.
func (s *Shared) shard(v string) (sh *shard, h uint32) {
	full := s.seed.String(v)
	return &s.shards[full%numShards], uint32(full >> 32)
}
