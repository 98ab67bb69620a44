package cache

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/panics"
)

func newOf[K comparable, V any](t testing.TB, o *OfOptions[K, V]) *Of[K, V] {
	o.MaxBytes = MinBytes
	c := NewOf(alloctest.New(t), o)
	t.Cleanup(c.Close)
	return c
}

// testOf runs all calls with two keys and two values.
func testOf[K comparable, V any](t *testing.T, o *OfOptions[K, V], k, l K, v, w V, equal func(a, b V) bool) {
	c := newOf(t, o)
	want := func(k K, v V) {
		t.Helper()
		if got, ok := c.Get(k); !ok || !equal(got, v) {
			t.Errorf("Get(%v) = %v, %t; want %v", k, got, ok, v)
		}
	}
	must(0, c.Set(k, v))
	must(0, c.SetTTL(l, w, time.Hour))
	want(k, v)
	want(l, w)
	if !c.Delete(k) || c.Delete(k) {
		t.Error("Delete, twice = false, true")
	}
	if _, ok := c.Get(k); ok {
		t.Error("it is still there")
	}
	for range 2 {
		got, err := c.GetOrLoad(t.Context(), k, func(context.Context) (V, error) { return w, nil })
		if err != nil || !equal(got, w) {
			t.Errorf("GetOrLoad = %v, %v", got, err)
		}
	}
	want(k, w)
	failure := errors.New("no")
	c.Delete(k)
	if _, err := c.GetOrLoad(t.Context(), k, func(context.Context) (V, error) { return v, failure }); err != failure {
		t.Errorf("GetOrLoad: %v", err)
	}
}

type person struct {
	Name string
	Tags []string
}

func TestOf(t *testing.T) {
	testOf(t, &OfOptions[string, string]{}, "k", "", "v", "", func(a, b string) bool { return a == b })
	testOf(t, &OfOptions[[2]uint32, []byte]{}, [2]uint32{1, 2}, [2]uint32{1, 3}, []byte("v"), nil,
		func(a, b []byte) bool { return string(a) == string(b) })
	type point struct{ x, y float64 }
	testOf(t, &OfOptions[int, point]{}, 1, -1, point{1, 2}, point{}, func(a, b point) bool { return a == b })
	byJSON := &Codec[person]{
		Append: func(dst []byte, v person) ([]byte, error) {
			b, err := json.Marshal(v)
			return append(dst, b...), err
		},
		Decode: func(b []byte) (v person, err error) { return v, json.Unmarshal(b, &v) },
	}
	testOf(t, &OfOptions[string, person]{Values: byJSON}, "a", "b", person{Name: "A", Tags: []string{"x"}}, person{},
		func(a, b person) bool { return a.Name == b.Name && len(a.Tags) == len(b.Tags) })
}

// TestCodecsFail: calls return the errors of Append. A value that cannot be decoded is not found.
func TestCodecsFail(t *testing.T) {
	failure := errors.New("no")
	c := newOf(t, &OfOptions[string, int]{Values: &Codec[int]{
		Append: func(dst []byte, v int) ([]byte, error) {
			if v < 0 {
				return nil, failure
			}
			return append(dst, byte(v)), nil
		},
		Decode: func([]byte) (int, error) { return 0, failure },
	}})
	if err := c.Set("k", -1); err != failure {
		t.Errorf("Set: %v", err)
	}
	must(0, c.Set("k", 1))
	if _, ok := c.Get("k"); ok {
		t.Error("Get has decoded it")
	}
	if _, err := c.GetOrLoad(t.Context(), "l", func(context.Context) (int, error) { return 1, nil }); err != failure {
		t.Errorf("GetOrLoad: %v", err)
	}
	keys := newOf(t, &OfOptions[int, int]{Keys: &Codec[int]{
		Append: func(dst []byte, k int) ([]byte, error) { return nil, failure },
	}})
	if err := keys.Set(1, 1); err != failure {
		t.Errorf("Set: %v", err)
	}
}

// formats are codecs of two versions of a program. Each decodes only its own strings; for others it
// returns an error and a part of the value.
func formats(version byte) *Codec[string] {
	return &Codec[string]{
		Append: func(dst []byte, v string) ([]byte, error) { return append(append(dst, version), v...), nil },
		Decode: func(b []byte) (string, error) {
			if b[0] != version {
				return "half-decoded", errors.New("another format")
			}
			return string(b[1:]), nil
		},
	}
}

// TestUndecodableIsMissing: an entry of another format counts as a miss. GetOrLoad replaces it by a
// load, unless another goroutine writes the key during the load.
func TestUndecodableIsMissing(t *testing.T) {
	c := newOf(t, &OfOptions[string, string]{Options: Options{Negative: time.Minute}, Values: formats(1)})
	for _, k := range []string{"k", "l", "m"} {
		must(0, c.Set(k, "old"))
	}
	c.values = *formats(2)
	if v, ok := c.Get("k"); v != "" || ok {
		t.Errorf("Get = %q, %t", v, ok)
	}
	failure := errors.New("no")
	load := func(k, want string, wantErr error, load func() (string, error)) {
		t.Helper()
		v, err := c.GetOrLoad(t.Context(), k, func(context.Context) (string, error) { return load() })
		if v != want || err != wantErr {
			t.Errorf("GetOrLoad(%q) = %q, %v; want %q, %v", k, v, err, want, wantErr)
		}
	}
	load("k", "new", nil, func() (string, error) { return "new", nil })
	load("k", "new", nil, nil)
	load("l", "", failure, func() (string, error) { return "", failure })
	load("l", "loaded", nil, func() (string, error) {
		must(0, c.Set("l", "set meanwhile"))
		return "loaded", nil
	})
	load("l", "set meanwhile", nil, nil)
	load("m", "", ErrNotFound, func() (string, error) { return "", ErrNotFound })
	load("m", "", ErrNotFound, nil)
	st := c.Stats()
	if got, want := [...]uint64{st.Hits, st.Misses, st.Undecodable}, [...]uint64{2, 6, 5}; got != want {
		t.Errorf("hits, misses, undecodable: %v, want %v", got, want)
	}
	c.check()
}

// TestDeleteDuringALoad: a load that replaces an undecodable entry is not stored if the entry is
// deleted meanwhile.
func TestDeleteDuringALoad(t *testing.T) {
	k := []byte("k")
	for name, del := range map[string]func(c *Cache){
		"Delete":                  func(c *Cache) { c.Delete(k) },
		"Touch of a negative TTL": func(c *Cache) { c.Touch(k, -1) },
	} {
		c := newOf(t, &OfOptions[string, string]{Values: formats(1)})
		must(0, c.Set("k", "old"))
		c.values = *formats(2)
		v, err := c.GetOrLoad(t.Context(), "k", func(context.Context) (string, error) { del(&c.Cache); return "new", nil })
		if v != "new" || err != nil || c.Len() != 0 {
			t.Errorf("%s: %q, %v, and %d entries", name, v, err, c.Len())
		}
	}
}

// TestCodecKeepsItsMemory: Append may return the memory of its argument, and the cache does not
// change it. The value that Get returns is a copy.
func TestCodecKeepsItsMemory(t *testing.T) {
	own := &Codec[string]{Append: func(_ []byte, v string) ([]byte, error) { return []byte(v), nil }}
	own.Decode = func(b []byte) (string, error) { return string(b), nil }
	same := &Codec[[]byte]{Append: func(_, v []byte) ([]byte, error) { return v, nil }}
	same.Decode = func(b []byte) ([]byte, error) { return b[:len(b):len(b)], nil }
	c := newOf(t, &OfOptions[string, []byte]{Keys: own, Values: same})
	first := []byte("first value")
	must(0, c.Set("k", first))
	for i := range 100 {
		must(0, c.Set("l", []byte{byte(i), byte(i)}))
	}
	if string(first) != "first value" {
		t.Errorf("the caller's value has become %q", first)
	}

	plain := newOf(t, &OfOptions[string, []byte]{})
	must(0, plain.Set("k", first))
	got, _ := plain.Get("k")
	got[0] = 'X'
	loaded := must(plain.GetOrLoad(t.Context(), "k", nil))
	loaded[0] = 'Y'
	if again, _ := plain.Get("k"); string(again) != "first value" {
		t.Errorf("a write to what Get returned has made it %q", again)
	}
}

// TestOfMistakes: calls of the zero Of panic, and so does NewOf for a Codec without a function.
func TestOfMistakes(t *testing.T) {
	var zero Of[string, string]
	load := func(context.Context) (string, error) { return "", nil }
	for name, call := range map[string]func(){
		"Of.Get":       func() { zero.Get("k") },
		"Of.Set":       func() { zero.Set("k", "v") },
		"Of.SetTTL":    func() { zero.SetTTL("k", "v", 0) },
		"Of.Delete":    func() { zero.Delete("k") },
		"Of.GetOrLoad": func() { zero.GetOrLoad(t.Context(), "k", load) },
		"Cache.Clear":  func() { zero.Clear() },
		"Cache.Resize": func() { zero.Resize(MinBytes) },
	} {
		maker := map[bool]string{true: "cache.NewOf", false: "cache.New"}[name[:2] == "Of"]
		panics.Want(t, "freehold: cache."+name+": zero value: "+maker+" makes one", call)
	}
	if zero.Close(); zero.Len() != 0 || zero.Stats() != (Stats{}) {
		t.Errorf("the zero Of has %+v", zero.Stats())
	}
	whole := formats(1)
	for _, o := range []*OfOptions[string, string]{
		{Keys: &Codec[string]{Decode: whole.Decode}},
		{Values: &Codec[string]{Decode: whole.Decode}},
		{Values: &Codec[string]{Append: whole.Append}},
	} {
		o.MaxBytes = MinBytes
		panics.Want(t, "freehold: cache.NewOf: a Codec needs Append, and one of values Decode too", func() { NewOf(alloctest.New(t), o) })
	}
}
