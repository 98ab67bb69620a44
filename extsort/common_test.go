package extsort

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/freehold-go/freehold/internal/keysort"
)

// Records that begin with much of one record, in all ways to leave it, some more than
// once. Equal ones keep their order.
func TestSortByCommon(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	tests := []struct {
		name string
		tail func() string
	}{
		{"nothing", func() string { return "" }},
		{"a byte", func() string { return string("\x00axz\xff"[r.IntN(5)]) }},
		{"zeros", func() string { return strings.Repeat("\x00", r.IntN(12)) }},
		{"words", func() string { return strings.Repeat("xxxxxxxy", r.IntN(3)) + string("ab"[r.IntN(2)]) }},
	}
	for _, tt := range tests {
		for _, ties := range []int{0, 1, -1} {
			text, e := []byte(nil), []entry(nil)
			for range 10 * manyEntries {
				at := len(text)
				text = append(text, strings.Repeat("x", 10+r.IntN(90))+tt.tail()...)
				e = append(e, entry{word: keysort.Word(text[at:], 0), at: uint32(at), n: uint32(len(text) - at)})
			}
			want := slices.Clone(e)
			key := func(e entry) []byte { return text[e.at:][:e.n] }
			slices.SortFunc(want, func(a, b entry) int { return cmp.Or(bytes.Compare(key(a), key(b)), cmp.Compare(a.at, b.at)*ties) })
			(&radix{text: text, ties: ties, stop: new(atomic.Bool)}).sort(e, 0)
			for i := range e {
				if !bytes.Equal(key(e[i]), key(want[i])) || ties != 0 && e[i].at != want[i].at {
					t.Errorf("%s, ties %d: entry %d is %q, want %q", tt.name, ties, i, key(e[i]), key(want[i]))
					break
				}
			}
		}
	}
}

// Most entries are alike if their words are, and go on.
func TestMostAreLike(t *testing.T) {
	entries := func(words ...uint64) (e []entry) {
		for _, w := range words {
			for range manyEntries / len(words) {
				e = append(e, entry{word: w, n: uint32(10 + len(e))})
			}
		}
		return e
	}
	most := entries(1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2)
	tests := []struct {
		name  string
		e     []entry
		depth int
		want  *entry
	}{
		{"the longest", most, 0, &most[len(most)-1]},
		{"few", most[:manyEntries-1], 0, nil},
		{"three quarters", entries(1, 2, 2, 2), 0, nil},
		{"three of many", func() []entry {
			e := entries(1, 3, 4, 5)
			e[len(e)/4].word, e[len(e)/2].word, e[len(e)/4*3].word = 2, 2, 2
			return e
		}(), 0, nil},
		{"words that are all", most, wordOnly, nil},
		{"records that end", most, 1000, nil},
	}
	for _, tt := range tests {
		if got := mostAreLike(tt.e, tt.depth); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
