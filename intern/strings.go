// Strings: a set for one goroutine, with a store and a table.

package intern

import (
	"iter"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/container"
	"github.com/freehold-go/freehold/internal/hash"
)

// ID is the number of a string in its [Strings] or [Shared]. IDs are dense: the first
// string has ID 0, and each new one the next. An ID may be stored anywhere, off-heap too.
type ID uint32

// Options sets up [Strings] and [Shared]; nil means all defaults.
type Options struct {
	// Name appears in Stats and, if the strings are dropped without Close, in the report of
	// package track. It may be empty, and several may have the same name. To account for the
	// memory in profiles too, use a [freehold.Tagged] as the parent.
	Name string

	// RefCounts counts references to each string, and frees it when the last one is
	// released: see [Strings.Release]. It costs 4 bytes a string. False means that
	// strings stay until Close.
	RefCounts bool
}

// Strings is a set of strings with an [ID] for each. [New] makes one. It is not safe for
// concurrent use, except that Lookup, Value, All, Len and Stats may be called at the same
// time; [Shared] is safe.
//
// A string of up to 247 bytes takes its length plus 5 bytes, rounded up to a multiple of 4, then 4
// bytes for its ID and 9 to 12 bytes in the table. A longer string has a block of its own, and its
// record takes 24 bytes. Memory grows by steps of at most a quarter. No string takes memory on the
// Go heap; the struct has 3 KiB.
type Strings struct {
	base  container.Base
	table table
	store store
	seed  hash.Seed
	hash  func(hash.Seed, string) uint64 // nil except in tests
}

var stringsKind = container.Kind{Type: "intern.Strings", Maker: "intern.New", Is: "the strings are"}

// New returns an empty set over parent, which must outlive it. It takes no memory before the first
// string; Close frees all. It panics if parent is nil.
func New(parent freehold.Allocator, o *Options) *Strings {
	if o == nil {
		o = &Options{}
	}
	s := &Strings{seed: hash.NewSeed()}
	container.Make(s, &s.base, &stringsKind, parent, o.Name)
	s.store.init(parent, o.RefCounts)
	s.table.init()
	return s
}

// Intern returns the ID of the string that equals v. If there is none, it adds a copy of v. It does
// not keep v. With Options.RefCounts it adds a reference.
//
// The error matches [freehold.ErrOutOfMemory]: it is the parent's, or the set has reached 2^32
// strings or 16 GiB. The set is then unchanged.
//
// Intern costs a hash, a scan of a few slots of 8 bytes, and a comparison. A new string may make a
// segment of the table grow, which copies at most 32 KiB, or double the table's directory, which
// has 16 bytes for each 1,600 strings or more.
func (s *Strings) Intern(v string) (ID, error) {
	s.base.MustBeOpen(&stringsKind, "Intern")
	h := s.hashOf(v)
	if r := s.table.find(&s.store, h, v); r != nil {
		s.store.retain(r.id)
		return ID(r.id), nil
	}
	return s.add(h, v)
}

// InternBytes is Intern for the bytes of b. It copies b only if the string is new, and does not
// keep b.
func (s *Strings) InternBytes(b []byte) (ID, error) { return s.Intern(textOf(b)) }

// add adds v, which is new.
func (s *Strings) add(h uint32, v string) (ID, error) {
	room, err := s.table.makeRoom(&s.store.memory, h)
	if err != nil {
		return 0, err
	}
	at, err := s.store.add(v)
	if err != nil {
		return 0, err
	}
	s.table.insert(room, h, at)
	return ID(s.store.record(at).id), nil
}

// Lookup returns the ID of the string that equals v, and whether there is one. It adds neither the
// string nor a reference.
func (s *Strings) Lookup(v string) (ID, bool) {
	s.base.MustBeOpen(&stringsKind, "Lookup")
	if r := s.table.find(&s.store, s.hashOf(v), v); r != nil {
		return ID(r.id), true
	}
	return 0, false
}

// LookupBytes is Lookup for the bytes of b, without a copy.
func (s *Strings) LookupBytes(b []byte) (ID, bool) { return s.Lookup(textOf(b)) }

// Value returns the string of an ID. It is off-heap and does not move: it is valid until Close or,
// with Options.RefCounts, until the last reference is released. To store a reference to it
// off-heap, use [freehold.StringOf]. Value copies nothing and costs a few loads. It panics if no
// string has the ID.
func (s *Strings) Value(id ID) string {
	v, ok := s.store.value(id)
	if !ok {
		s.store.noString(&s.base, &stringsKind, "Value", id)
	}
	return v
}

// Retain adds a reference to a string, as Intern of it does. It panics if no string has the ID, or
// without Options.RefCounts.
func (s *Strings) Retain(id ID) {
	s.mustHave("Retain", id)
	s.store.retain(uint32(id))
}

// Release drops a reference to a string. If it was the last, Release frees the string and reports
// true. Call Release once for each Intern and Retain, in any order. It panics if no string has the
// ID, or without Options.RefCounts.
//
// The ID and the memory of a freed string are reused, the newest free ID first, so IDs stay dense.
// IDs have no generations: an ID that is used after its last Release may name another string. A
// string that has reached 2^32-1 references stays until Close. The memory of a short string is
// reused for strings of at most its length; the block of a long one is returned to the parent. The
// table does not shrink.
func (s *Strings) Release(id ID) bool {
	v := s.mustHave("Release", id)
	if !s.store.release(uint32(id)) {
		return false
	}
	s.table.remove(s.hashOf(v), *s.store.refs.word(uint32(id)))
	s.store.remove(uint32(id))
	return true
}

// mustHave returns the string of an ID. It panics if there is none or references are not counted.
func (s *Strings) mustHave(call string, id ID) string {
	s.base.MustBeOpen(&stringsKind, call)
	v, ok := s.store.value(id)
	if !ok {
		s.store.noString(&s.base, &stringsKind, call, id)
	}
	s.store.mustCount(&stringsKind, call)
	return v
}

// All returns an iterator over IDs and strings, in the order of IDs. The loop may add and release
// strings: All yields the string that an ID has when it reaches that ID.
func (s *Strings) All() iter.Seq2[ID, string] {
	return func(yield func(ID, string) bool) {
		s.base.MustBeOpen(&stringsKind, "All")
		for id := ID(0); uint32(id) < s.store.ids.Load(); id++ {
			if v, ok := s.store.value(id); ok && !yield(id, v) {
				return
			}
		}
	}
}

// Len returns the number of strings. With Options.RefCounts an ID may be greater; every ID is less
// than Stats().IDs.
func (s *Strings) Len() int { return s.store.live() }

// Close frees all memory. The strings of Value are no longer valid. Later calls panic,
// except Close, Len and Stats.
func (s *Strings) Close() {
	if s.base.MayClose(&stringsKind, s.store.reserved.Load() > 0) {
		s.table.close(&s.store.memory)
		s.store.close()
		container.Closed(s, &s.base)
	}
}

// hashOf returns the bits of v's hash for the table.
func (s *Strings) hashOf(v string) uint32 {
	if s.hash != nil {
		return uint32(s.hash(s.seed, v) >> 32)
	}
	return uint32(s.seed.String(v) >> 32)
}

// noString panics for an ID without a string.
func (s *store) noString(b *container.Base, k *container.Kind, call string, id ID) {
	b.MustBeOpen(k, call)
	if s.counted && uint32(id) < s.ids.Load() {
		arg.Panicf(k.Type+"."+call, "the last reference to the string with the ID %d was released", id)
	}
	arg.Panicf(k.Type+"."+call, "no string has the ID %d", id)
}
