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

// plain converts a tree to the value that encoding/json decodes into an any.
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

// compare compares the tree of a text, or the error, with encoding/json's.
func compare(t *testing.T, a *arena.Arena, text string) {
	t.Helper()
	var want any
	wantErr := json.Unmarshal([]byte(text), &want)
	n, err := Parse(a, []byte(text))
	switch {
	case (err == nil) != (wantErr == nil):
		t.Errorf("%.200q: error %v, and of encoding/json %v", text, err, wantErr)
	case err == nil:
		if got := plain(n); !reflect.DeepEqual(got, want) {
			t.Errorf("%.200q is %#v, want %#v", text, got, want)
		}
	case a.Stats().Live != 0:
		t.Errorf("%.200q: after an error the arena holds %d blocks", text, a.Stats().Live)
	}
	a.Reset()
}

var texts = []string{
	``, ` `, `null`, ` true `, `false`, `nul`, `nulll`, `True`, "\x00", "null\x00", "\ufeffnull",
	`0`, `-0`, `-0.5e-3`, `1E+2`, `12345678901234567890`, `1e308`, `[1, 1e309]`, `-1e999`, `1e-999`, `01`, `.5`, `1_000`,
	`""`, `"é €😀"`, `"`, `"a`, `'a'`, "\"a\nb\"", `"\"\\\/\b\f\n\r\t"`, `"\u00e9\u20AC"`, `"\x"`, `"\`, `"\"`, `"\u12g4"`,
	`"\ud83d\ude00"`, `"\ud83d"`, `"\ude00x"`, `"\ud83dx"`, `"\ud83d\u0041"`, `"\ud83d\ud83d\ude00"`, `"\ud83d\n"`, `"\ud83d\\u"`,
	"\"\xff\"", "\"a\xc3\"", "\"\xe2\x82\\n\"", "\"\xed\xa0\x80\"", "\xff",
	`[]`, `[ ]`, `[1, "a", null, [2, []], {}]`, `[1`, `[1,`, `[1,]`, `[1 2]`, `[]]`, `[1}`,
	`{}`, `{ }`, ` { "a" : [ { "b" : { } } ] , "c" : "d" } `, `{"a":1,"a":2}`, `{"":0}`, `{"\n":"\u0000"}`, `{"a":",:"}`,
	`{`, `{"a"`, `{"a":`, `{"a":1,}`, `{"a" 1}`, `{1:2}`, `{"a":1]`, `1 2`, `/**/1`,
	strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), strings.Repeat(`{"a":`, 10_001) + "1" + strings.Repeat("}", 10_001),
	string(document(10_000)),
}

func TestParse(t *testing.T) {
	a := arena.New(alloctest.New(t), nil)
	defer a.Close()
	for _, text := range texts {
		compare(t, a, text)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range texts {
		f.Add(text)
	}
	a := arena.New(alloctest.New(f), nil)
	defer a.Close()
	f.Fuzz(func(t *testing.T, text string) { compare(t, a, text) })
}

func TestGet(t *testing.T) {
	a := arena.New(alloctest.New(t), nil)
	defer a.Close()
	n, err := Parse(a, []byte(`{"a": 1, "b\u0020c": "d", "a": [2]}`))
	if err != nil {
		t.Fatal(err)
	}
	if n.Get("a").Kind != Array || n.Get("b c").Text.Get() != "d" || n.Get("x") != nil || n.Get("a").Get("") != nil {
		t.Error("Get found the wrong children")
	}
}

// Whichever allocation fails, the arena stays unchanged.
func TestOutOfMemory(t *testing.T) {
	for n := 0; ; n++ {
		a := arena.New(alloctest.FailAfter(alloctest.New(t), n), &arena.Options{ChunkBytes: 256, MaxChunkBytes: 1024})
		_, err := Parse(a, document(20_000))
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

// The tree allocates nothing on the Go heap. json.Valid may: its scanner is from a sync.Pool.
func TestNoGoAllocations(t *testing.T) {
	if asan.Enabled {
		t.Skip("instrumented code allocates, and so do checked blocks")
	}
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	a := arena.New(heap, nil)
	defer a.Close()
	text := document(10_000)
	if n := testing.AllocsPerRun(100, func() {
		freehold.Must(Parse(a, text))
		a.Reset()
	}); n > 10 {
		t.Errorf("a parse makes %v allocations on the Go heap", n)
	}
}

func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(&out, 1000, 2); err != nil || !strings.Contains(out.String(), "holds 0 blocks") {
		t.Errorf("error %v, printed\n%s", err, out.String())
	}
}

func BenchmarkParse(b *testing.B) {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	a := arena.New(heap, nil)
	defer a.Close()
	for _, row := range []struct {
		memory string
		parse  func(text []byte) error
	}{
		{"go", func(text []byte) error {
			var v any
			return json.Unmarshal(text, &v)
		}},
		{"arena", func(text []byte) error {
			_, err := Parse(a, text)
			a.Reset()
			return err
		}},
	} {
		for _, size := range []int{1 << 10, 1 << 20} {
			text := document(size)
			b.Run(fmt.Sprintf("memory=%s/bytes=%d", row.memory, size), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					if err := row.parse(text); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
