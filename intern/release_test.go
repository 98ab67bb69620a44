package intern

import (
	"fmt"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/panics"
)

// A call that found its ID's string before another dropped the last reference panics. It changes
// neither the list of free IDs nor the count of the ID's next string.
func TestSharedLastReferenceDroppedAtOnce(t *testing.T) {
	for _, again := range []bool{false, true} { // whether the ID has another string by then
		s := NewShared(alloctest.New(t), &Options{RefCounts: true})
		ids := map[ID]string{}
		intern := func(v string) ID {
			id := freehold.Must(s.Intern(v))
			if was := ids[id]; was != "" {
				t.Errorf("%q and %q have the ID %d", was, v, id)
			}
			ids[id] = v
			return id
		}
		for i := range 3 {
			intern(fmt.Sprint("kept ", i))
		}
		first, second := intern("first"), intern("second")
		sh, h := s.shard(s.mustHave("", second))
		delete(ids, first)
		delete(ids, second)
		s.Release(first)
		s.Release(second) // its count is now a link to first
		if again {
			intern("another")
		}
		const want = "freehold: intern.Shared.%s: the last reference to the string with the ID %d was released"
		for range 2 {
			panics.Want(t, fmt.Sprintf(want, "Release", second), func() { s.releaseIn("Release", sh, h, second) })
		}
		panics.Want(t, fmt.Sprintf(want, "Retain", second), func() { s.retainIn("Retain", sh, h, second) })
		count := s.store.counts.word(uint32(second))
		was := *count
		if _, ok := s.holdIn(sh, second); ok { // another string in the same shard
			s.Release(second)
		}
		if *count != was {
			t.Fatalf("All has changed the count of the ID %d from %d to %d", second, was, *count)
		}
		for i := range 4 {
			intern(fmt.Sprint("later ", i))
		}
		for id, v := range ids {
			if s.Value(id) != v || !s.Release(id) {
				t.Errorf("%q is %q, or has more than one reference", v, s.Value(id))
			}
		}
		if fault := s.check(); fault != "" || s.Len() != 0 {
			t.Errorf("%q, %+v", fault, s.Stats())
		}
		s.Close()
	}
}
