package cache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
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

// typedLoad is a function that loads a value.
func typedLoad[V any](v V, err error) func(context.Context) (EntryOf[V], error) {
	return func(context.Context) (EntryOf[V], error) { return EntryOf[V]{Value: v}, err }
}

// testOf runs the calls with two keys and two values.
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
		got, err := c.GetOrLoad(t.Context(), k, typedLoad(w, nil))
		if err != nil || !equal(got, w) {
			t.Errorf("GetOrLoad = %v, %v", got, err)
		}
	}
	want(k, w)
	failure := errors.New("no")
	c.Delete(k)
	if _, err := c.GetOrLoad(t.Context(), k, typedLoad(v, failure)); err != failure {
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
	if _, err := c.GetOrLoad(t.Context(), "l", typedLoad(1, nil)); err != failure {
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
		v, err := c.GetOrLoad(t.Context(), k, func(context.Context) (e EntryOf[string], err error) {
			e.Value, err = load()
			return e, err
		})
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

// TestBytesOfAnotherLength: they are no value of a type without pointers, for example after its
// struct has lost a field.
func TestBytesOfAnotherLength(t *testing.T) {
	values := codecOf[[2]uint64]("Values", nil)
	for n := range 25 {
		if _, err := values.Decode(make([]byte, n)); (err == nil) != (n == 16) {
			t.Errorf("%d bytes for a type of 16: %v", n, err)
		}
	}
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
		v, err := c.GetOrLoad(t.Context(), "k", func(context.Context) (EntryOf[string], error) {
			del(&c.Cache)
			return EntryOf[string]{Value: "new"}, nil
		})
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

// TestOfEntries: all calls with entries, once each.
func TestOfEntries(t *testing.T) {
	type key struct{ a, b uint32 }
	o := &OfOptions[key, person]{Values: NewCodec[person](json.Marshal, json.Unmarshal), Options: Options{Access: true}}
	c := newOf(t, o)
	k, l, ann, bob := key{1, 2}, key{3, 4}, person{Name: "Ann"}, person{Name: "Bob"}
	entry := EntryOf[person]{Value: ann, Flags: 7, TTL: time.Hour}
	want := func(k key, name string, flags uint64, version uint64) {
		t.Helper()
		calls := 0
		check := func(e EntryOf[person]) {
			calls++
			if e.Value.Name != name || e.Flags != flags || e.Version != version || e.TTL > time.Hour {
				t.Errorf("%+v, want %s, %d, %d", e, name, flags, version)
			}
		}
		if !c.Peek(k, check) || !c.View(k, check) {
			t.Error("no entry")
		}
		c.GetMany([]key{l, {}, k}, func(i int, e EntryOf[person]) {
			if i == 2 {
				check(e)
			}
		})
		if calls != 3 {
			t.Errorf("%d calls", calls)
		}
	}
	version := must(c.Put(k, entry))
	want(k, "Ann", 7, version)
	if must(c.Add(k, entry)) || !must(c.Add(l, entry)) || must(c.Replace(key{}, entry)) || !must(c.Replace(l, EntryOf[person]{Value: bob})) {
		t.Error("Add or Replace")
	}
	if must(c.CompareAndSet(k, version+1, entry)) || !must(c.CompareAndSet(k, version, EntryOf[person]{Value: bob, Flags: 8})) {
		t.Error("CompareAndSet")
	}
	version = must(c.Update(k, func(e *EntryOf[person], found bool) Change {
		if !found || e.Value.Name != "Bob" || e.Flags != 8 {
			t.Errorf("Update: %+v, %t", e, found)
		}
		e.Value.Name, e.Flags = "Cid", 9
		return Store
	}))
	want(k, "Cid", 9, version)
	all := map[key]string{}
	for k, e := range c.All() {
		all[k] = e.Value.Name
	}
	if !maps.Equal(all, map[key]string{k: "Cid", l: "Bob"}) {
		t.Errorf("All: %v", all)
	}
	for range c.All() {
		break
	}
	if got := must(c.Update(k, func(*EntryOf[person], bool) Change { return Keep })); got != version {
		t.Errorf("Update: version %d, want %d", got, version)
	}
	if got := must(c.Update(k, func(*EntryOf[person], bool) Change { return Remove })); got != 0 || c.View(k, func(EntryOf[person]) {}) {
		t.Errorf("Update: version %d, want none", got)
	}
	if c.Touch(k, time.Hour) || !c.Touch(l, -1) || c.Touch(l, 0) || c.Peek(l, nil) {
		t.Error("Touch")
	}
	many := make([]key, 100)
	for i := range many {
		many[i] = key{uint32(i), 0}
		must(0, c.Set(many[i], person{Name: fmt.Sprint(i)}))
	}
	next := 0
	c.Prefetch(many)
	c.GetMany(many, func(i int, e EntryOf[person]) {
		if i != next || e.Value.Name != fmt.Sprint(i) {
			t.Errorf("GetMany: %d has %q", i, e.Value.Name)
		}
		next++
	})
	if next != len(many) {
		t.Errorf("GetMany: %d calls", next)
	}
}

// TestUndecodableInCalls: an entry of another format is missing for all calls that read values, and
// is an entry for the others.
func TestUndecodableInCalls(t *testing.T) {
	c := newOf(t, &OfOptions[string, string]{Keys: formats(1), Values: formats(1), Options: Options{TTL: time.Hour}})
	clock := c.fake()
	old := func() {
		must(0, c.SetTTL("k", "old", 0))
		c.values = *formats(2)
	}
	store := func(e *EntryOf[string], found bool) Change {
		if found || *e != (EntryOf[string]{}) {
			t.Errorf("Update: %+v, %t", e, found)
		}
		e.Value = "new"
		return Store
	}
	for name, call := range map[string]func() bool{
		"View":     func() bool { return c.View("k", nil) },
		"Peek":     func() bool { return c.Peek("k", nil) },
		"GetMany":  func() bool { c.GetMany([]string{"k"}, nil); return false },
		"Prefetch": func() bool { c.Prefetch([]string{"k"}); return false },
		"All": func() (found bool) {
			for range c.All() {
				found = true
			}
			return found
		},
		"a key of another format": func() bool {
			c.keys = *formats(2)
			defer func() { c.keys = *formats(1) }()
			c.values = *formats(1)
			for range c.All() {
				return true
			}
			return false
		},
		"Update to mark it": func() bool {
			must(c.Update("k", func(e *EntryOf[string], _ bool) Change { e.Flags = 7; return Mark }))
			c.values = *formats(1)
			return !c.Peek("k", func(e EntryOf[string]) {
				if e.Flags != 0 {
					t.Errorf("flags %d", e.Flags)
				}
			})
		},
		"Add":    func() bool { return must(c.Add("k", EntryOf[string]{})) },
		"Update": func() bool { must(c.Update("k", store)); clock.now += 2 * time.Hour; return c.Peek("k", nil) },
	} {
		c.values = *formats(1)
		if old(); call() {
			t.Errorf("%s finds it", name)
		}
	}
	for name, call := range map[string]func() bool{
		"Touch":   func() bool { return c.Touch("k", time.Hour) },
		"Delete":  func() bool { return c.Delete("k") },
		"Replace": func() bool { return must(c.Replace("k", EntryOf[string]{})) },
		"Update":  func() bool { must(c.Update("k", store)); v, _ := c.Get("k"); return v == "new" },
		"Update to remove it": func() bool {
			must(c.Update("k", func(*EntryOf[string], bool) Change { return Remove }))
			return c.Len() == 0
		},
	} {
		c.values = *formats(1)
		if old(); !call() {
			t.Errorf("%s does not find it", name)
		}
	}
}

// TestKeysFail: a key that cannot be encoded has no entry, and calls that store return the error.
func TestKeysFail(t *testing.T) {
	failure := errors.New("no")
	c := newOf(t, &OfOptions[int, string]{Keys: &Codec[int]{Append: func(dst []byte, k int) ([]byte, error) {
		if k == 7 {
			return append(dst, "half"...), failure
		}
		return dst, nil
	}}})
	must(0, c.Set(1, "of the key without bytes"))
	var found []int
	c.GetMany([]int{1, 7, 1}, func(i int, _ EntryOf[string]) { found = append(found, i) })
	if !slices.Equal(found, []int{0, 2}) {
		t.Errorf("GetMany finds %v", found)
	}
	_, put := c.Put(7, EntryOf[string]{})
	_, add := c.Add(7, EntryOf[string]{})
	_, update := c.Update(7, nil)
	if c.View(7, nil) || c.Peek(7, nil) || c.Touch(7, 0) || c.Delete(7) || put != failure || add != failure || update != failure {
		t.Error(put, add, update)
	}
	panics.Want(t, "freehold: cache.Of.All: Keys has no Decode", func() { c.All()(nil) })
	panics.Want(t, "freehold: cache.Of.Coldest: Keys has no Decode", func() { c.Coldest()(nil) })
}

// TestUpdateFails: if the codec fails in Update, the entry stays.
func TestUpdateFails(t *testing.T) {
	failure := errors.New("no")
	values := formats(1)
	c := newOf(t, &OfOptions[string, string]{Values: &Codec[string]{Decode: values.Decode, Append: func(dst []byte, v string) ([]byte, error) {
		if v == "bad" {
			return nil, failure
		}
		return values.Append(dst, v)
	}}})
	must(0, c.Set("k", "good"))
	_, err := c.Update("k", func(e *EntryOf[string], _ bool) Change { e.Value = "bad"; return Store })
	if v, _ := c.Get("k"); v != "good" || err != failure {
		t.Error(v, err)
	}
}

// TestOfOnEvict: OnEvict gets keys and values as they were stored, and nothing that is not decoded.
func TestOfOnEvict(t *testing.T) {
	type evicted struct {
		k, v string
		why  Reason
	}
	var all []evicted
	c := newOf(t, &OfOptions[string, string]{Keys: formats(1), Values: formats(1), OnEvict: func(k string, e EntryOf[string], why Reason) {
		all = append(all, evicted{k, e.Value, why})
	}})
	clock := c.fake()
	must(0, c.SetTTL("k", "v", time.Second))
	must(0, c.Cache.SetTTL([]byte{1, 'b'}, []byte{2}, time.Second))
	must(0, c.Cache.SetTTL([]byte{2}, []byte{1}, time.Second))
	clock.now += time.Hour
	for _, key := range [][]byte{{1, 'k'}, {1, 'b'}, {2}} {
		must(0, c.Cache.Set(key, []byte{1}))
	}
	if !slices.Equal(all, []evicted{{"k", "v", Expired}}) {
		t.Errorf("%v", all)
	}
	for _, o := range []*OfOptions[string, string]{{Options: Options{OnEvict: func([]byte, Entry, Reason) {}}}, {Keys: &Codec[string]{Append: formats(1).Append}}} {
		o.MaxBytes, o.OnEvict = MinBytes, func(string, EntryOf[string], Reason) {}
		panics.Want(t, "freehold: cache.NewOf: OnEvict needs Keys with Decode, and Options without OnEvict", func() { NewOf(alloctest.New(t), o) })
	}
	// Expiry has the same conditions, and replaces TTL and Sliding.
	expiry := func(string, EntryOf[string], bool) time.Duration { return 0 }
	expiryOfBytes := func([]byte, Entry, bool) time.Duration { return 0 }
	for _, o := range []*OfOptions[string, string]{
		{Expiry: expiry, Keys: &Codec[string]{Append: func(dst []byte, v string) ([]byte, error) { return dst, nil }}},
		{Expiry: expiry, Options: Options{MaxBytes: MinBytes, Expiry: expiryOfBytes}},
	} {
		panics.Want(t, "freehold: cache.NewOf: Expiry needs Keys with Decode, and Options without Expiry", func() { NewOf(alloctest.New(t), o) })
	}
	for _, o := range []Options{{TTL: 1}, {Sliding: true}} {
		o.MaxBytes, o.Expiry = MinBytes, expiryOfBytes
		panics.Want(t, "freehold: cache.New: Options.Expiry together with TTL or Sliding", func() { New(alloctest.New(t), &o) })
	}
	panics.Want(t, "freehold: cache.NewCodec: a function is nil", func() { NewCodec[int](nil, json.Unmarshal) })
}

// TestOfMistakes: calls of the zero Of panic, and so does NewOf for a Codec without a function.
func TestOfMistakes(t *testing.T) {
	var zero Of[string, string]
	for name, call := range map[string]func(){
		"Of.Get":           func() { zero.Get("k") },
		"Of.Set":           func() { zero.Set("k", "v") },
		"Of.SetTTL":        func() { zero.SetTTL("k", "v", 0) },
		"Of.Delete":        func() { zero.Delete("k") },
		"Of.GetOrLoad":     func() { zero.GetOrLoad(t.Context(), "k", nil) },
		"Of.GetOrLoadMany": func() { zero.GetOrLoadMany(t.Context(), nil, nil, nil) },
		"Of.View":          func() { zero.View("k", nil) },
		"Of.GetMany":       func() { zero.GetMany(nil, nil) },
		"Of.All":           func() { zero.All()(nil) },
		"Of.Hottest":       func() { zero.Hottest()(nil) },
		"Of.Put":           func() { zero.Put("k", EntryOf[string]{}) },
		"Of.Update":        func() { zero.Update("k", nil) },
		"Of.Touch":         func() { zero.Touch("k", 0) },
		"Cache.Clear":      func() { zero.Clear() },
		"Cache.Resize":     func() { zero.Resize(MinBytes) },
	} {
		maker := map[bool]string{true: "cache.NewOf", false: "cache.New"}[name[:2] == "Of"]
		panics.Want(t, "freehold: cache."+name+": zero value: "+maker+" makes one", call)
	}
	if zero.Close(); zero.Len() != 0 || zero.Stats() != (Stats{}) {
		t.Errorf("the zero Of has %+v", zero.Stats())
	}
	// Where a type needs a Codec, the message says in which field.
	type named struct{ Name string }
	bound := Options{MaxBytes: MinBytes}
	panics.Want(t, "freehold: cache.NewOf[V=named]: field Name is a string, which points into the Go heap; set OfOptions.Values, for example to cache.NewCodec[cache.named](json.Marshal, json.Unmarshal)",
		func() { NewOf(alloctest.New(t), &OfOptions[int, named]{Options: bound}) })
	panics.Want(t, "freehold: cache.NewOf[K=*int]: it is a *int, which points into the Go heap; set OfOptions.Keys, for example to cache.NewCodec[*int](json.Marshal, json.Unmarshal)",
		func() { NewOf(alloctest.New(t), &OfOptions[*int, int]{Options: bound}) })
	panics.Want(t, "freehold: cache.NewOf: a K of float64, with padding or floats, needs a Codec in OfOptions.Keys",
		func() { NewOf(alloctest.New(t), &OfOptions[float64, int]{Options: bound}) })
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
