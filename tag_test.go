package freehold_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// tagNames counts the tags that tests made: they stay, so no two runs have one.
var tagNames int

// newTag returns a name for a tag that is new.
func newTag(t *testing.T) string {
	tagNames++
	return fmt.Sprint(strings.ReplaceAll(t.Name(), "/", " "), " ", tagNames)
}

// tagStats returns the counts of tags that begin with a name.
func tagStats(name string) (all []freehold.TagStats) {
	for _, t := range freehold.AllTags() {
		if strings.HasPrefix(t.Tag, name) {
			all = append(all, t)
		}
	}
	return all
}

func TestTaggedConforms(t *testing.T) {
	alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
		tagged := freehold.NewTagged(freehold.NewTagged(alloctest.New(t), newTag(t)), "inner")
		t.Cleanup(func() {
			if c := tagged.Counts(); c.LiveBytes != 0 || c.Live != 0 || c.Allocs != c.Frees {
				t.Errorf("when all are freed: %+v", c)
			}
		})
		return tagged
	}, &alloctest.Options{Concurrent: true, Detects: alloctest.AllMistakes})
}

// A tag counts its blocks and the blocks of the tags below, and Tagged of one tag count
// together.
func TestTagsCount(t *testing.T) {
	next := newRoomy(t)
	name := newTag(t)
	db := freehold.NewTagged(next, name)
	cache := freehold.NewTagged(freehold.NewLimit(freehold.NewTagged(freehold.NewLocked(db), ""), 1<<20), "cache")
	same := freehold.NewTagged(db, "cache")
	freehold.NewTagged(next, name+"!")
	if cache.Tag() != name+"/cache" || same.Tag() != cache.Tag() || db.Tag() != name {
		t.Errorf("tags %q, %q, %q", cache.Tag(), same.Tag(), db.Tag())
	}
	var a, b, c []byte
	none := freehold.Counts{}
	for _, s := range []struct {
		step      string
		call      func()
		db, cache freehold.Counts
	}{
		{"at first", func() {}, none, none},
		{"Alloc", func() { a = freehold.Must(db.Alloc(100, 8)) }, freehold.Counts{Live: 1, LiveBytes: 100, PeakBytes: 100, Allocs: 1}, none},
		{"Zeroed", func() { b = freehold.Must(cache.Zeroed(10, 8)) }, freehold.Counts{Live: 2, LiveBytes: 110, PeakBytes: 110, Allocs: 2}, freehold.Counts{Live: 1, LiveBytes: 10, PeakBytes: 10, Allocs: 1}},
		{"the same tag", func() { c = freehold.Must(same.Alloc(20, 8)) }, freehold.Counts{Live: 3, LiveBytes: 130, PeakBytes: 130, Allocs: 3}, freehold.Counts{Live: 2, LiveBytes: 30, PeakBytes: 30, Allocs: 2}},
		{"Resize", func() { b, _ = cache.Resize(b, 40) }, freehold.Counts{Live: 3, LiveBytes: 160, PeakBytes: 160, Allocs: 3}, freehold.Counts{Live: 2, LiveBytes: 60, PeakBytes: 60, Allocs: 2}},
		{"Resize that fails", func() { cache.Resize(b, 1<<30) }, freehold.Counts{Live: 3, LiveBytes: 160, PeakBytes: 160, Allocs: 3}, freehold.Counts{Live: 2, LiveBytes: 60, PeakBytes: 60, Allocs: 2}},
		{"Alloc that fails", func() { cache.Alloc(1<<30, 8) }, freehold.Counts{Live: 3, LiveBytes: 160, PeakBytes: 160, Allocs: 3}, freehold.Counts{Live: 2, LiveBytes: 60, PeakBytes: 60, Allocs: 2}},
		{"Free by another Tagged", func() { same.Free(b) }, freehold.Counts{Live: 2, LiveBytes: 120, PeakBytes: 160, Allocs: 3, Frees: 1}, freehold.Counts{Live: 1, LiveBytes: 20, PeakBytes: 60, Allocs: 2, Frees: 1}},
		{"Free", func() { db.Free(a) }, freehold.Counts{Live: 1, LiveBytes: 20, PeakBytes: 160, Allocs: 3, Frees: 2}, freehold.Counts{Live: 1, LiveBytes: 20, PeakBytes: 60, Allocs: 2, Frees: 1}},
		{"Resize to 0", func() { cache.Resize(c, 0) }, freehold.Counts{PeakBytes: 160, Allocs: 3, Frees: 3}, freehold.Counts{PeakBytes: 60, Allocs: 2, Frees: 2}},
	} {
		s.call()
		// A tag is before those below it, though "!" is before "/".
		want := []freehold.TagStats{{Tag: name, Counts: s.db}, {Tag: name + "/cache", Counts: s.cache}, {Tag: name + "!"}}
		if got := tagStats(name); !slices.Equal(got, want) {
			t.Errorf("%s: %+v, want %+v", s.step, got, want)
		}
		if db.Counts() != s.db || cache.Counts() != s.cache || same.Counts() != s.cache {
			t.Errorf("%s: Counts are others than those of AllTags", s.step)
		}
	}
}

func TestNamesOfTags(t *testing.T) {
	for _, name := range []string{"", "a", "block-cache", "Größe 1", "(x=1, y)", "日本"} {
		if got := freehold.NewTagged(newSlot(), name).Tag(); got != name {
			t.Errorf("tag %q, want %q", got, name)
		}
	}
	for _, name := range []string{"a/b", "/", "a\n", "\x00", "\xff", "a\u2028"} {
		wantPanic(t, fmt.Sprintf("freehold: NewTagged: name %q, want printing characters without slashes", name), func() { freehold.NewTagged(newSlot(), name) })
	}
}

func TestTaggedIsAString(t *testing.T) {
	name := newTag(t)
	tagged := freehold.NewTagged(newSlot(), name)
	freehold.Must(tagged.Alloc(300, 8))
	freehold.Must(tagged.Alloc(1, 8))
	if got, want := tagged.String(), fmt.Sprintf("tag %q: 2 blocks, 301 bytes live", name); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, none := range []*freehold.Tagged{nil, {}} {
		if got := none.String(); got != "<nil>" {
			t.Errorf("%s", got)
		}
	}
}
