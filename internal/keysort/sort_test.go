package keysort

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// texts make keys that have broken sorts before: equal ones, keys that begin others, also
// but for zeros, and keys that differ where a word begins or ends.
var texts = []struct {
	name string
	key  func(r *rand.Rand, i int) string
}{
	{"empty", func(*rand.Rand, int) string { return "" }},
	{"equal", func(*rand.Rand, int) string { return "the same again" }},
	{"any bytes", func(r *rand.Rand, _ int) string { return tail(r, 30, anyBytes) }},
	{"a byte", func(r *rand.Rand, _ int) string { return string([]byte{byte(r.Uint32())}) }},
	{"two letters", func(r *rand.Rand, _ int) string { return tail(r, 40, "ab") }},
	{"zeros", func(r *rand.Rand, _ int) string { return strings.Repeat("\x00", r.IntN(40)) }},
	{"zeros that fill words", func(r *rand.Rand, _ int) string { return "a" + strings.Repeat("\x00", r.IntN(20)) }},
	{"numbers", func(_ *rand.Rand, i int) string { return fmt.Sprintf("%09d", i*7919%4000) }},
	{"sorted", func(_ *rand.Rand, i int) string { return fmt.Sprintf("%09d", i/3) }},
	{"descending", func(_ *rand.Rand, i int) string { return fmt.Sprintf("%09d", 1<<20-i) }},
	{"descending, equal in pairs", func(_ *rand.Rand, i int) string { return fmt.Sprintf("%09d", 1<<20-i/2) }},
	{"bytes 7 to 9", func(r *rand.Rand, _ int) string { return "1234567" + tail(r, 3, "ab") + "tail" }},
	{"bytes 15 to 17", func(r *rand.Rand, _ int) string { return "123456781234567" + tail(r, 3, "ab") + "tail" }},
	{"a long prefix", func(r *rand.Rand, _ int) string { return strings.Repeat("p", 300) + tail(r, 11, anyBytes) }},
	{"30 long prefixes", func(r *rand.Rand, _ int) string {
		return strings.Repeat(string([]byte{byte(r.IntN(30))}), 300) + tail(r, 11, anyBytes)
	}},
	{"each begins the next", func(_ *rand.Rand, i int) string { return strings.Repeat("x", i%700) }},
	{"much in common", func(r *rand.Rand, _ int) string { return common(r) }},
	{"in common, then a byte", func(r *rand.Rand, _ int) string { return common(r) + tail(r, 1, "\x00axz\xff") }},
	{"in common, then zeros", func(r *rand.Rand, _ int) string { return common(r) + strings.Repeat("\x00", r.IntN(12)) }},
	{"in common, then words", func(r *rand.Rand, _ int) string {
		return common(r) + strings.Repeat("xxxxxxxy", r.IntN(3)) + tail(r, 1, "ab")
	}},
}

func common(r *rand.Rand) string { return strings.Repeat("x", 10+r.IntN(90)) }

var anyBytes = func() string {
	b := make([]byte, 256)
	for i := range b {
		b[i] = byte(i)
	}
	return string(b)
}()

// tail returns up to n of the given bytes.
func tail(r *rand.Rand, n int, of string) string {
	b := make([]byte, r.IntN(n+1))
	for i := range b {
		b[i] = of[r.IntN(len(of))]
	}
	return string(b)
}

// entriesOf returns the entries of n keys, and the text that they are in.
func entriesOf(r *rand.Rand, n int, key func(r *rand.Rand, i int) string) (text []byte, e []Entry) {
	for i := range n {
		at := len(text)
		text = append(text, key(r, i)...)
		text = append(text, '|') // so that no two have one offset
		e = append(e, Entry{Word: Word(text[at:len(text)-1], 0), At: uint32(at), N: uint32(len(text) - 1 - at)})
	}
	return text, e
}

func TestSort(t *testing.T) {
	for i, tt := range texts {
		for _, n := range []int{0, 1, 2, fewEntries, fewEntries + 1, manyEntries, 10 * manyEntries} {
			for _, ties := range []int{0, 1, -1} {
				text, e := entriesOf(rand.New(rand.NewPCG(7, uint64(i))), n, tt.key)
				key := func(e Entry) []byte { return text[e.At:][:e.N] }
				want := slices.Clone(e)
				slices.SortFunc(want, func(a, b Entry) int {
					return cmp.Or(bytes.Compare(key(a), key(b)), cmp.Compare(a.At, b.At)*ties)
				})
				inText := Sorter{Text: text, Ties: ties, Stop: new(atomic.Bool)}
				elsewhere := Sorter{Key: func(e Entry) []byte { return bytes.Clone(key(e)) }, Ties: ties, Stop: new(atomic.Bool)}
				for name, s := range map[string]*Sorter{"in the text": &inText, "elsewhere": &elsewhere} {
					got := slices.Clone(e)
					s.Sort(got)
					for i := range got {
						if !bytes.Equal(key(got[i]), key(want[i])) || ties != 0 && got[i].At != want[i].At {
							t.Errorf("%s, %d keys %s, ties %d: entry %d is %q, want %q", tt.name, n, name, ties, i, key(got[i]), key(want[i]))
							break
						}
					}
				}
			}
		}
	}
}

// What the keys of a group have in common is read once, not in steps of a word.
func TestCommonPrefixesAreSkipped(t *testing.T) {
	const n, mostCalls = 1000, 20 // for each key; in steps of 8 bytes there are 125 or more
	for _, prefixes := range []int{1, 30} {
		text, e := entriesOf(rand.New(rand.NewPCG(1, 2)), n, func(r *rand.Rand, _ int) string {
			return strings.Repeat(string([]byte{byte(r.IntN(prefixes))}), 1000) + tail(r, 11, anyBytes)
		})
		calls := 0
		s := Sorter{Ties: 1, Stop: new(atomic.Bool), Key: func(e Entry) []byte { calls++; return text[e.At:][:e.N] }}
		s.Sort(e)
		if calls > n*mostCalls {
			t.Errorf("%d prefixes: %d calls of Key for %d keys, want %d for each at most", prefixes, calls, n, mostCalls)
		}
	}
}

// With Stop a sort ends before it looks at the keys again.
func TestStopEndsASort(t *testing.T) {
	const n = 1000
	for name, head := range map[string]func(i int) string{
		"one word":    func(int) string { return "12345678" },
		"30 words":    func(i int) string { return fmt.Sprintf("%08d", i%30) },
		"most in one": func(i int) string { return fmt.Sprintf("%08d", max(i%20, 1)/19) },
	} {
		text, e := entriesOf(rand.New(rand.NewPCG(1, 2)), n, func(r *rand.Rand, i int) string { return head(i) + tail(r, 30, "ab") })
		stop, calls := new(atomic.Bool), 0
		stop.Store(true)
		s := Sorter{Ties: 1, Stop: stop, Key: func(e Entry) []byte { calls++; return text[e.At:][:e.N] }}
		s.Sort(e)
		if calls > n*3/2 {
			t.Errorf("%s: %d calls of Key for %d keys", name, calls, n)
		}
	}
}

// A Key that returns others each time, also shorter ones, loses no entry. Neither does Stop.
func TestContradictionsLoseNothing(t *testing.T) {
	for stopAt := range 200 {
		r := rand.New(rand.NewPCG(1, uint64(stopAt)))
		text, e := entriesOf(r, 500, func(r *rand.Rand, _ int) string { return "same" + tail(r, 40, "ab") })
		want, stop, calls := slices.Clone(e), new(atomic.Bool), 0
		s := Sorter{Ties: 1, Stop: stop, Key: func(e Entry) []byte {
			if calls++; calls == stopAt*50 {
				stop.Store(stopAt > 100)
			}
			return text[e.At:][:r.IntN(int(e.N)+1)]
		}}
		s.Sort(e)
		slices.SortFunc(e, func(a, b Entry) int { return cmp.Compare(a.At, b.At) })
		if !slices.EqualFunc(e, want, func(a, b Entry) bool { return a.At == b.At && a.N == b.N }) {
			t.Fatalf("%d calls: entries are lost", calls)
		}
	}
}

// Most entries are alike if their words are, and go on.
func TestMostAreLike(t *testing.T) {
	entries := func(words ...uint64) (e []Entry) {
		for _, w := range words {
			for range manyEntries / len(words) {
				e = append(e, Entry{Word: w, N: uint32(10 + len(e))})
			}
		}
		return e
	}
	most := entries(1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2)
	tests := []struct {
		name  string
		e     []Entry
		depth int
		want  *Entry
	}{
		{"the longest", most, 0, &most[len(most)-1]},
		{"few", most[:manyEntries-1], 0, nil},
		{"three quarters", entries(1, 2, 2, 2), 0, nil},
		{"three of many", func() []Entry {
			e := entries(1, 3, 4, 5)
			e[len(e)/4].Word, e[len(e)/2].Word, e[len(e)/4*3].Word = 2, 2, 2
			return e
		}(), 0, nil},
		{"words that are all", most, wordOnly, nil},
		{"keys that end", most, 1000, nil},
	}
	for _, tt := range tests {
		if got := mostAreLike(tt.e, tt.depth); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
