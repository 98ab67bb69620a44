package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/internal/asan"
)

// plain returns a tree as encoding/json decodes a text into an any.
func plain(n *Node) any {
	switch n.Kind {
	case False, True:
		return n.Kind == True
	case Number:
		return n.Number
	case String:
		return strings.Clone(n.Text.Get())
	case Array:
		v := []any{}
		for c := range n.All() {
			v = append(v, plain(c))
		}
		return v
	case Object:
		v := map[string]any{}
		for c := range n.All() {
			v[strings.Clone(c.Key.Get())] = plain(c)
		}
		return v
	}
	return nil
}

func plainGo(n *goNode) any {
	switch n.kind {
	case False, True:
		return n.kind == True
	case Number:
		return n.number
	case String:
		return n.text
	case Array:
		v := []any{}
		for c := n.first; c != nil; c = c.next {
			v = append(v, plainGo(c))
		}
		return v
	case Object:
		v := map[string]any{}
		for c := n.first; c != nil; c = c.next {
			v[c.key] = plainGo(c)
		}
		return v
	}
	return nil
}

// compare compares both parsers with encoding/json.
func compare(t *testing.T, a *arena.Arena, text string) {
	t.Helper()
	var want any
	wantErr := json.Unmarshal([]byte(text), &want)
	n, err := Parse(a, text)
	g, errGo := parseGo(text)
	if (err == nil) != (wantErr == nil) || (errGo == nil) != (wantErr == nil) {
		t.Fatalf("%.200q: arena %v, Go heap %v, encoding/json %v", text, err, errGo, wantErr)
	}
	if err == nil {
		if got := plain(n); !reflect.DeepEqual(got, want) {
			t.Errorf("%.200q in an arena is %#v, want %#v", text, got, want)
		}
		if got := plainGo(g); !reflect.DeepEqual(got, want) {
			t.Errorf("%.200q on the Go heap is %#v, want %#v", text, got, want)
		}
		return
	}
	var syntax *SyntaxError
	if !errors.As(err, &syntax) || syntax.Offset < 0 || syntax.Offset > len(text) {
		t.Errorf("%.200q: error %q has no offset in the text", text, err)
	}
	if err.Error() != errGo.Error() {
		t.Errorf("%.200q: arena %q, Go heap %q", text, err, errGo)
	}
}

func newArena(t testing.TB) *arena.Arena {
	a := arena.New(alloctest.New(t), nil)
	t.Cleanup(a.Close)
	return a
}

var texts = []string{
	``, ` `, `null`, ` true `, `false`, `nul`, `nulll`, `True`, "\x00", "null\x00", "\ufeffnull",
	`0`, `-0`, `-0.5e-3`, `1E+2`, `12345678901234567890`, `1e308`, `1e309`, `-1e999`, `1e-999`,
	`-`, `+1`, `01`, `.5`, `1.`, `1e`, `1e+`, `0x10`, `1_000`, `NaN`, `Infinity`,
	`""`, `"a"`, `"é €😀"`, `"`, `"a`, `'a'`, "\"a\nb\"", "\"\x7f\"",
	`"\"\\\/\b\f\n\r\t"`, `"\u00e9\u20AC"`, `"\x"`, `"\`, `"\"`, `"\u12"`, `"\u12g4"`, `"\u123`,
	`"\ud83d\ude00"`, `"\ud83d"`, `"\ude00x"`, `"\ud83dx"`, `"\ud83d\u0041"`, `"\ud83d\ud83d\ude00"`, `"\ud83d\n"`,
	"\"\xff\"", "\"a\xc3\"", "\"\xe2\x82\\n\"", "\"\xed\xa0\x80\"", "\xff",
	`[]`, `[ ]`, `[1]`, `[1, "a", null, [2, []], {}]`, `[`, `[1`, `[1,`, `[1,]`, `[,1]`, `[1 2]`, `]`, `[]]`, `[1}`,
	`{}`, `{ }`, `{"a":1}`, ` { "a" : [ { "b" : { } } ] , "c" : "d" } `, `{"a":1,"a":2}`, `{"":0}`, `{"\n":"\u0000"}`,
	`{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{"a" 1}`, `{"a",1}`, `{1:2}`, `{a:1}`, `{"a":1]`, `{,}`, `}`,
	`1 2`, `[] x`, `{"a":1}null`, `/**/1`,
}

func TestParse(t *testing.T) {
	a := newArena(t)
	for _, text := range texts {
		compare(t, a, text)
		a.Reset()
	}
	compare(t, a, generate(100_000))
}

func FuzzParse(f *testing.F) {
	for _, text := range texts {
		f.Add(text)
	}
	f.Add(generate(500))
	a := newArena(f)
	f.Fuzz(func(t *testing.T, text string) {
		defer a.Reset()
		compare(t, a, text)
	})
}

func TestErrors(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{``, "offset 0: expected a value, the text ends"},
		{`[1, 2`, "offset 5: expected ',' or ']', the text ends"},
		{`{"a" 1}`, "offset 5: expected ':' after the key, found '1'"},
		{`{"a": 1,}`, "offset 8: expected a key, found '}'"},
		{`[1,]`, "offset 3: expected a value, found ']'"},
		{`1 €`, "offset 2: expected the end of the text, found '€'"},
		{"[\xff]", "offset 1: expected a value, found byte 0xff"},
		{`[tru]`, "offset 1: expected true, found 't'"},
		{`-x`, "offset 1: expected a digit, found 'x'"},
		{`[1e999]`, "offset 1: the number is too large"},
		{`["a`, "offset 1: the string does not end"},
		{`"a\qb"`, "offset 2: no escape that JSON has"},
		{`"\u12"`, `offset 1: \u without four hexadecimal digits`},
	} {
		_, err := Parse(newArena(t), test.text)
		if err == nil || err.Error() != test.want {
			t.Errorf("%q: error %v, want %q", test.text, err, test.want)
		}
	}
}

// The maximum depth is that of encoding/json.
func TestDepth(t *testing.T) {
	a := newArena(t)
	for _, depth := range []int{maxDepth, maxDepth + 1, 100 * maxDepth} {
		for _, text := range []string{
			strings.Repeat("[", depth) + strings.Repeat("]", depth),
			strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth),
			strings.Repeat("[", depth),
		} {
			_, err := Parse(a, text)
			if ok := json.Valid([]byte(text)); (err == nil) != ok {
				t.Errorf("depth %d of %.1q: error %v, and encoding/json says %t", depth, text, err, ok)
			}
			a.Reset()
		}
	}
}

func TestGet(t *testing.T) {
	n, err := Parse(newArena(t), `{"a": 1, "b\u0020c": "d", "a": 2}`)
	if err != nil {
		t.Fatal(err)
	}
	if n.Get("a").Number != 2 || n.Get("b c").Text.Get() != "d" || n.Get("x") != nil || n.Get("a").Get("a") != nil {
		t.Error("Get found the wrong children")
	}
}

// Whichever allocation fails, the arena is unchanged and keeps working.
func TestOutOfMemory(t *testing.T) {
	text := generate(20_000)
	for n := 0; ; n++ {
		a := arena.New(alloctest.FailAfter(alloctest.New(t), n), &arena.Options{ChunkBytes: 256, MaxChunkBytes: 1024})
		_, err := Parse(a, text)
		if st := a.Stats(); err != nil && (st.LiveBytes != 0 || st.Live != 0) {
			t.Errorf("after failure %d the arena holds %d blocks of %d bytes", n, st.Live, st.LiveBytes)
		}
		a.Close()
		if err == nil {
			break
		}
		if !errors.Is(err, freehold.ErrOutOfMemory) {
			t.Fatalf("failure %d: %v", n, err)
		}
	}
}

func TestNoGoAllocations(t *testing.T) {
	if asan.Enabled {
		t.Skip("instrumented code allocates, and so do checked blocks")
	}
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	a := arena.New(heap, nil)
	defer a.Close()
	text := generate(10_000)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := Parse(a, text); err != nil {
			t.Fatal(err)
		}
		a.Reset()
	}); n != 0 {
		t.Errorf("a parse makes %v allocations on the Go heap", n)
	}
}

func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(&out, "", 1000, 2); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "holds 0 blocks") {
		t.Errorf("printed\n%s", out.String())
	}
	if err := run(&out, t.TempDir(), 1000, 2); err == nil {
		t.Error("no error for a file that cannot be read")
	}
}

func BenchmarkParse(b *testing.B) {
	for _, size := range []int{1 << 10, 1 << 20} {
		text := generate(size)
		b.Run(fmt.Sprintf("memory=go/bytes=%d", size), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := parseGo(text); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("memory=arena/bytes=%d", size), func(b *testing.B) {
			heap := freehold.NewHeap(nil)
			defer heap.Close()
			a := arena.New(heap, nil)
			defer a.Close()
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(a, text); err != nil {
					b.Fatal(err)
				}
				a.Reset()
			}
		})
	}
}

// Each goroutine gets an arena for the life of a tree.
func BenchmarkParseParallel(b *testing.B) {
	text := generate(1 << 10)
	b.Run("memory=go", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				_, _ = parseGo(text)
			}
		})
	})
	b.Run("memory=recycler", func(b *testing.B) {
		heap := freehold.NewHeap(nil)
		defer heap.Close()
		arenas := arena.NewRecycler(heap, nil)
		defer arenas.Close()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				a, _ := arenas.Get(0)
				_, _ = Parse(a, text)
				arenas.Put(a)
			}
		})
	})
}
