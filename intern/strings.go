// Strings: a store and its table, for one goroutine.

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
	// package track. It may be empty, and several may have one name. To account for the
	// memory in profiles too, put a [freehold.Tagged] below.
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
// A string of up to 247 bytes takes its length, 5 bytes rounded up to a multiple of 4, 4
// bytes for its ID, and 9 to 12 bytes in the table. A longer one has a block of its own
// and takes 24 bytes beside it. Memory grows by steps of at most a quarter. Nothing is on
// the Go heap for each string, and the struct has 3 KiB.
type Strings struct {
	base  container.Base
	table table
	store store
	seed  hash.Seed
	hash  func(hash.Seed, string) uint64 // nil but in tests
}

var stringsKind = container.Kind{Type: "intern.Strings", Maker: "intern.New", Is: "the strings are"}

// New returns an empty set over parent, which must outlive it. It takes no memory before
// the first string, and Close gives all back. It panics if parent is nil.
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

// Intern returns the ID of the string that equals v, and adds a copy of v if there is
// none. It does not keep v. With Options.RefCounts it adds a reference.
//
// The error matches [freehold.ErrOutOfMemory]: it is the parent's, or 2^32 strings or 16
// GiB of strings are there. Nothing has changed then.
//
// The cost is that of a hash, a walk over few slots of 8 bytes, and a comparison. A new
// string may make a part of the table grow, which copies 32 KiB at most, or the table's
// directory, of 16 bytes for each 1,600 strings or more.
func (s *Strings) Intern(v string) (ID, error) {
	s.base.MustBeOpen(&stringsKind, "Intern")
	h := s.hashOf(v)
	if at := s.table.find(&s.store, h, v); at != none {
		id := s.store.record(at).id
		s.store.retain(id)
		return ID(id), nil
	}
	return s.add(h, v)
}

// InternBytes is Intern of the string of b, without a copy but the one that a new string
// needs. It does not keep b.
func (s *Strings) InternBytes(b []byte) (ID, error) { return s.Intern(textOf(b)) }

// add adds v, which is not there.
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

// Lookup returns the ID of the string that equals v, and whether there is one. It adds
// neither the string nor a reference.
func (s *Strings) Lookup(v string) (ID, bool) {
	s.base.MustBeOpen(&stringsKind, "Lookup")
	at := s.table.find(&s.store, s.hashOf(v), v)
	if at == none {
		return 0, false
	}
	return ID(s.store.record(at).id), true
}

// LookupBytes is Lookup of the string of b, without a copy.
func (s *Strings) LookupBytes(b []byte) (ID, bool) { return s.Lookup(textOf(b)) }

// Value returns the string of an ID. It is off-heap and does not move: it is valid until
// Close or, with Options.RefCounts, until the last reference is released.
// [freehold.StringOf] makes a reference of it that can be stored off-heap. Value copies
// nothing and costs a few loads. It panics if no string has that ID.
func (s *Strings) Value(id ID) string {
	v, ok := s.store.value(id)
	if !ok {
		noString(&s.base, &stringsKind, "Value", id)
	}
	return v
}

// Retain adds a reference to a string, as Intern of it does. It panics if no string has
// that ID, or without Options.RefCounts.
func (s *Strings) Retain(id ID) {
	s.mustHave("Retain", id)
	s.store.retain(uint32(id))
}

// Release drops a reference to a string. If it was the last, it frees the string, and
// reports that. Each Intern and Retain wants one Release, in any order. It panics if no
// string has that ID, or without Options.RefCounts.
//
// The ID and the memory of a freed string are reused: IDs stay dense, and the newest free
// one is first. IDs have no generations, so an ID that is kept after its reference is
// gone may be that of another string by then. After 2^32-1 references a string stays until
// Close. Memory goes to new strings that are as long or shorter, and to the parent only
// where the string had a block of its own; the table does not shrink.
func (s *Strings) Release(id ID) bool {
	v := s.mustHave("Release", id)
	if !s.store.release(uint32(id)) {
		return false
	}
	s.table.remove(s.hashOf(v), *s.store.refs.word(uint32(id)))
	s.store.remove(uint32(id))
	return true
}

// mustHave returns the string of an ID whose references are counted.
func (s *Strings) mustHave(call string, id ID) string {
	s.base.MustBeOpen(&stringsKind, call)
	v, ok := s.store.value(id)
	if !ok {
		noString(&s.base, &stringsKind, call, id)
	}
	s.store.mustCount(&stringsKind, call)
	return v
}

// All returns the IDs and strings, in the order of IDs. Strings may be added and released
// meanwhile: All has those that are there when it comes to their IDs.
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

// Len returns the number of strings. With Options.RefCounts an ID may be greater; each is
// less than Stats().IDs.
func (s *Strings) Len() int { return s.store.live() }

// Close frees all memory. The strings of Value are no longer valid. Later calls panic,
// except Close, Len, Stats and LogValue.
func (s *Strings) Close() {
	if s.base.MayClose(&stringsKind, s.store.reserved.Load() > 0) {
		s.table.close(&s.store.memory)
		s.store.close()
		container.Closed(s, &s.base)
	}
}

// hashOf returns the bits of v's hash that the table uses.
func (s *Strings) hashOf(v string) uint32 {
	if s.hash != nil {
		return uint32(s.hash(s.seed, v) >> 32)
	}
	return uint32(s.seed.String(v) >> 32)
}

// noString panics for an ID without a string.
func noString(b *container.Base, k *container.Kind, call string, id ID) {
	b.MustBeOpen(k, call)
	arg.Panicf(k.Type+"."+call, "no string has the ID %d", id)
}
