// Conformance: rules that all containers obey, tested once for each kind.

package container_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/btree"
	"github.com/freehold-go/freehold/buffer"
	"github.com/freehold-go/freehold/cache"
	"github.com/freehold-go/freehold/hashmap"
	"github.com/freehold-go/freehold/intern"
	"github.com/freehold-go/freehold/internal/owners"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/vector"
)

type subject interface {
	Len() int
	Close()
}

// A kind describes one type of container of ints, or of their texts. Its functions take the
// result of make.
type kind struct {
	name, maker, is string
	none, zero      subject
	make            func(parent freehold.Allocator, name string) subject
	stats           func(subject) any
	add             func(subject, int) error
	clear           func(subject)            // nil if the kind has none
	reads, changes  map[string]func(subject) // the calls that panic after Close
}

type of[P any] map[string]func(P)

func kindOf[C any, P interface {
	*C
	subject
}, S any](is, name, maker string, make func(freehold.Allocator, string) P, stats func(P) S, add func(P, int) error, reads, changes of[P]) kind {
	calls := func(of of[P]) map[string]func(subject) {
		all := map[string]func(subject){}
		for name, call := range of {
			all[name] = func(s subject) { call(s.(P)) }
		}
		return all
	}
	return kind{
		name: name, maker: maker, is: is, none: P(nil), zero: P(new(C)),
		make:  func(parent freehold.Allocator, name string) subject { return make(parent, name) },
		stats: func(s subject) any { return stats(s.(P)) },
		add:   func(s subject, i int) error { return add(s.(P), i) },
		reads: calls(reads), changes: calls(changes), clear: calls(changes)["Clear"],
	}
}

func walk[K, V any](all iter.Seq2[K, V]) {
	for range all {
	}
}

type (
	hashMap    = hashmap.Map[int, int]
	sharedMap  = hashmap.Shared[int, int]
	orderedMap = btree.Map[int, int]
	array      = vector.Vector[int]
	chunked    = vector.Chunked[int]
)

func remove(*int, bool) freehold.Change { return freehold.Remove }

var kinds = []kind{
	kindOf("map is", "hashmap.Map", "hashmap.New",
		func(a freehold.Allocator, name string) *hashMap {
			return hashmap.New[int, int](a, &hashmap.Options{Name: name})
		},
		(*hashMap).Stats, func(m *hashMap, i int) error { return m.Put(i, i) },
		of[*hashMap]{
			"Get":     func(m *hashMap) { m.Get(1) },
			"At":      func(m *hashMap) { m.At(1) },
			"GetMany": func(m *hashMap) { m.GetMany(nil, nil, nil) },
			"All":     func(m *hashMap) { walk(m.All()) },
		}, of[*hashMap]{
			"Put":         func(m *hashMap) { m.Put(1, 1) },
			"PutIfAbsent": func(m *hashMap) { m.PutIfAbsent(1, 1) },
			"Update":      func(m *hashMap) { m.Update(1, func(*int, bool) {}) },
			"Compute":     func(m *hashMap) { m.Compute(1, remove) },
			"Delete":      func(m *hashMap) { m.Delete(1) },
			"Clear":       (*hashMap).Clear,
			"Grow":        func(m *hashMap) { m.Grow(1) },
			"PutMany":     func(m *hashMap) { m.PutMany(nil, nil) },
		}),
	kindOf("map is", "hashmap.Shared", "hashmap.NewShared",
		func(a freehold.Allocator, name string) *sharedMap {
			return hashmap.NewShared[int, int](a, &hashmap.Options{Name: name})
		},
		(*sharedMap).Stats, func(m *sharedMap, i int) error { return m.Put(i, i) },
		of[*sharedMap]{
			"Get":      func(m *sharedMap) { m.Get(1) },
			"View":     func(m *sharedMap) { m.View(1, func(int) {}) },
			"AppendTo": func(m *sharedMap) { m.AppendTo(nil, 1) },
			"All":      func(m *sharedMap) { walk(m.All()) },
		}, of[*sharedMap]{
			"Put":         func(m *sharedMap) { m.Put(1, 1) },
			"PutIfAbsent": func(m *sharedMap) { m.PutIfAbsent(1, 1) },
			"Update":      func(m *sharedMap) { m.Update(1, func(*int, bool) {}) },
			"Compute":     func(m *sharedMap) { m.Compute(1, remove) },
			"Delete":      func(m *sharedMap) { m.Delete(1) },
			"DeleteIf":    func(m *sharedMap) { m.DeleteIf(1, func(int) bool { return true }) },
			"Clear":       (*sharedMap).Clear,
			"Grow":        func(m *sharedMap) { m.Grow(1) },
		}),
	kindOf("map is", "btree.Map", "btree.New",
		func(a freehold.Allocator, name string) *orderedMap {
			return btree.New[int, int](a, &btree.Options{Name: name, Ranks: true})
		},
		(*orderedMap).Stats, func(m *orderedMap, i int) error { return m.Put(i, i) },
		of[*orderedMap]{
			"Get":          func(m *orderedMap) { m.Get(1) },
			"At":           func(m *orderedMap) { m.At(1) },
			"Min":          func(m *orderedMap) { m.Min() },
			"Max":          func(m *orderedMap) { m.Max() },
			"All":          func(m *orderedMap) { walk(m.All()) },
			"From":         func(m *orderedMap) { walk(m.From(1)) },
			"Range":        func(m *orderedMap) { walk(m.Range(1, 2)) },
			"GetAt":        func(m *orderedMap) { m.GetAt(0) },
			"Rank":         func(m *orderedMap) { m.Rank(1) },
			"Backward":     func(m *orderedMap) { walk(m.Backward()) },
			"BackwardFrom": func(m *orderedMap) { walk(m.BackwardFrom(1)) },
		}, of[*orderedMap]{
			"Put":         func(m *orderedMap) { m.Put(1, 1) },
			"PutIfAbsent": func(m *orderedMap) { m.PutIfAbsent(1, 1) },
			"Update":      func(m *orderedMap) { m.Update(1, func(*int, bool) {}) },
			"Delete":      func(m *orderedMap) { m.Delete(1) },
			"Take":        func(m *orderedMap) { m.Take(1) },
			"Compute":     func(m *orderedMap) { m.Compute(1, remove) },
			"Clone":       func(m *orderedMap) { m.Clone() },
			"DeleteRange": func(m *orderedMap) { m.DeleteRange(1, 2) },
			"DeleteFunc":  func(m *orderedMap) { m.DeleteFunc(func(int, *int) bool { return true }) },
			"Load":        func(m *orderedMap) { m.Load(func(func(int, int) bool) {}) },
			"Clear":       (*orderedMap).Clear,
		}),
	kindOf("strings are", "intern.Strings", "intern.New",
		func(a freehold.Allocator, name string) *intern.Strings {
			return intern.New(a, &intern.Options{Name: name})
		},
		(*intern.Strings).Stats, func(s *intern.Strings, i int) error { _, err := s.Intern(fmt.Sprint(i)); return err },
		of[*intern.Strings]{
			"Lookup": func(s *intern.Strings) { s.Lookup("") },
			"Value":  func(s *intern.Strings) { s.Value(0) },
			"All":    func(s *intern.Strings) { walk(s.All()) },
		}, of[*intern.Strings]{
			"Intern":  func(s *intern.Strings) { s.Intern("") },
			"Retain":  func(s *intern.Strings) { s.Retain(0) },
			"Release": func(s *intern.Strings) { s.Release(0) },
		}),
	kindOf("strings are", "intern.Shared", "intern.NewShared",
		func(a freehold.Allocator, name string) *intern.Shared {
			return intern.NewShared(a, &intern.Options{Name: name})
		},
		(*intern.Shared).Stats, func(s *intern.Shared, i int) error { _, err := s.Intern(fmt.Sprint(i)); return err },
		of[*intern.Shared]{
			"Lookup": func(s *intern.Shared) { s.Lookup("") },
			"Value":  func(s *intern.Shared) { s.Value(0) },
			"All":    func(s *intern.Shared) { walk(s.All()) },
		}, of[*intern.Shared]{
			"Intern":  func(s *intern.Shared) { s.Intern("") },
			"Retain":  func(s *intern.Shared) { s.Retain(0) },
			"Release": func(s *intern.Shared) { s.Release(0) },
		}),
	kindOf("vector is", "vector.Vector", "vector.New",
		func(a freehold.Allocator, name string) *array {
			return vector.New[int](a, &vector.Options{Name: name})
		},
		(*array).Stats, (*array).Append,
		of[*array]{
			"At":    func(v *array) { v.At(0) },
			"Slice": func(v *array) { v.Slice() },
			"All":   func(v *array) { walk(v.All()) },
		}, of[*array]{
			"Append":      func(v *array) { v.Append(1) },
			"AppendSlice": func(v *array) { v.AppendSlice(nil) },
			"Insert":      func(v *array) { v.Insert(0, nil) },
			"Delete":      func(v *array) { v.Delete(0, 0) },
			"Set":         func(v *array) { v.Set(0, 0) },
			"Pop":         func(v *array) { v.Pop() },
			"Truncate":    func(v *array) { v.Truncate(0) },
			"Clear":       (*array).Clear,
			"Grow":        func(v *array) { v.Grow(0) },
			"Clip":        (*array).Clip,
		}),
	kindOf("vector is", "vector.Chunked", "vector.NewChunked",
		func(a freehold.Allocator, name string) *chunked {
			return vector.NewChunked[int](a, &vector.Options{Name: name})
		},
		(*chunked).Stats, func(c *chunked, i int) error { _, err := c.Append(i); return err },
		of[*chunked]{
			"At":  func(c *chunked) { c.At(0) },
			"All": func(c *chunked) { walk(c.All()) },
		}, of[*chunked]{
			"Append":   func(c *chunked) { c.Append(1) },
			"Truncate": func(c *chunked) { c.Truncate(0) },
			"Clear":    (*chunked).Clear,
			"Grow":     func(c *chunked) { c.Grow(0) },
			"Clip":     (*chunked).Clip,
		}),
	kindOf("cache is", "cache.Cache", "cache.New",
		func(a freehold.Allocator, name string) *cache.Cache {
			return cache.New(a, &cache.Options{Name: name, MaxBytes: 1 << 20})
		},
		(*cache.Cache).Stats, func(c *cache.Cache, i int) error { return c.Set(fmt.Append(nil, i), nil) },
		of[*cache.Cache]{
			"Get":           func(c *cache.Cache) { c.Get(nil, nil) },
			"View":          func(c *cache.Cache) { c.View(nil, nil) },
			"GetMany":       func(c *cache.Cache) { c.GetMany(nil, nil) },
			"GetOrLoad":     func(c *cache.Cache) { c.GetOrLoad(context.Background(), nil, nil, nil) },
			"GetOrLoadMany": func(c *cache.Cache) { c.GetOrLoadMany(context.Background(), nil, nil, nil) },
			"All":           func(c *cache.Cache) { walk(c.All()) },
			"Hottest":       func(c *cache.Cache) { walk(c.Hottest()) },
			"Coldest":       func(c *cache.Cache) { walk(c.Coldest()) },
			"MaxEntry":      func(c *cache.Cache) { c.MaxEntry() },
			"Snapshot":      func(c *cache.Cache) { c.Snapshot(nil) },
			"SnapshotFile":  func(c *cache.Cache) { c.SnapshotFile("") },
		}, of[*cache.Cache]{
			"Set":           func(c *cache.Cache) { c.Set(nil, nil) },
			"SetTTL":        func(c *cache.Cache) { c.SetTTL(nil, nil, 0) },
			"Put":           func(c *cache.Cache) { c.Put(nil, cache.Entry{}) },
			"Add":           func(c *cache.Cache) { c.Add(nil, cache.Entry{}) },
			"Replace":       func(c *cache.Cache) { c.Replace(nil, cache.Entry{}) },
			"CompareAndSet": func(c *cache.Cache) { c.CompareAndSet(nil, 0, cache.Entry{}) },
			"Update":        func(c *cache.Cache) { c.Update(nil, nil) },
			"Touch":         func(c *cache.Cache) { c.Touch(nil, 0) },
			"Delete":        func(c *cache.Cache) { c.Delete(nil) },
			"Resize":        func(c *cache.Cache) { c.Resize(1 << 20) },
			"Clear":         (*cache.Cache).Clear,
			"Restore":       func(c *cache.Cache) { c.Restore(nil) },
			"RestoreFile":   func(c *cache.Cache) { c.RestoreFile("") },
		}),
}

// foreign is a parent that returns its own error.
type foreign struct{ freehold.Allocator }

func (foreign) Alloc(int, int) ([]byte, error)  { return nil, io.ErrShortBuffer }
func (foreign) Zeroed(int, int) ([]byte, error) { return nil, io.ErrShortBuffer }

const entries = 1000

// Each row tests one rule for one kind.
var agreements = map[string]func(t *testing.T, k kind){
	"a constructor wants a parent": func(t *testing.T, k kind) {
		panics.Want(t, "freehold: "+k.maker+": parent is nil", func() { k.make(nil, "") })
	},
	"the zero value can be closed, and panics else": func(t *testing.T, k kind) {
		k.zero.Close()
		wantRefusals(t, k, k.zero, "zero value: "+k.maker+" makes one")
	},
	"Close gives all memory back, once": func(t *testing.T, k kind) {
		memory := freehold.NewTagged(alloctest.New(t), "")
		s := filled(t, k, memory, "x")
		if got := figure(k, s, "Reserved"); got != int64(memory.Counts().LiveBytes) {
			t.Errorf("Reserved is %d, and the parent has %d", got, memory.Counts().LiveBytes)
		}
		s.Close()
		s.Close()
		if memory.Counts().Live != 0 || s.Len() != 0 || figure(k, s, "Reserved") != 0 {
			t.Errorf("after Close: %+v, and the parent has %+v", k.stats(s), memory.Counts())
		}
		wantRefusals(t, k, s, "the "+k.is+" closed")
	},
	"Close after that of the parent panics": func(t *testing.T, k kind) {
		heap := freehold.NewHeap(&freehold.HeapOptions{Name: "below"})
		s := filled(t, k, heap, "")
		heap.Close()
		panics.Want(t, "freehold: "+k.name+`.Close: heap "below" is closed`, s.Close)
	},
	"one that is dropped is reported": func(t *testing.T, k kind) {
		var out strings.Builder
		defer owners.WatchTo(&out)()
		heap := freehold.NewHeap(nil)
		defer heap.Close()
		done := make(chan struct{})
		go func() {
			defer close(done)
			k.add(k.make(heap, "dropped"), 1)
			k.make(heap, "ended").Close()
		}()
		<-done
		owners.Collect()
		if want := k.name + ` "dropped" was dropped without Close`; strings.Count(out.String(), want) != 1 || strings.Contains(out.String(), "ended") {
			t.Errorf("want %q:\n%s", want, out.String())
		}
	},
	"the parent's error is kept, and matches ErrOutOfMemory": func(t *testing.T, k kind) {
		s := k.make(foreign{freehold.Default()}, "")
		defer s.Close()
		if err := k.add(s, 1); !errors.Is(err, freehold.ErrOutOfMemory) || !errors.Is(err, io.ErrShortBuffer) || s.Len() != 0 {
			t.Errorf("error %v, and Len is %d", err, s.Len())
		}
	},
	"Stats has Name, Len and Reserved": func(t *testing.T, k kind) {
		s := filled(t, k, alloctest.New(t), "prices")
		defer s.Close()
		st := reflect.ValueOf(k.stats(s))
		if st.FieldByName("Name").String() != "prices" || figure(k, s, "Len") != entries || s.Len() != entries {
			t.Errorf("%+v", st)
		}
	},
	"Clear keeps the memory": func(t *testing.T, k kind) {
		if k.clear == nil {
			return
		}
		memory := freehold.NewTagged(alloctest.New(t), "")
		s := filled(t, k, memory, "")
		defer s.Close()
		before := memory.Counts()
		k.clear(s)
		if s.Len() != 0 {
			t.Errorf("Len is %d", s.Len())
		}
		for i := range entries {
			k.add(s, i)
		}
		if after := memory.Counts(); after != before || s.Len() != entries {
			t.Errorf("%+v, want %+v", after, before)
		}
	},
}

func TestAgreements(t *testing.T) {
	for _, k := range kinds {
		for name, agreement := range agreements {
			t.Run(k.name+"/"+name, func(t *testing.T) { agreement(t, k) })
		}
	}
}

func filled(t *testing.T, k kind, parent freehold.Allocator, name string) subject {
	s := k.make(parent, name)
	for i := range entries {
		if err := k.add(s, i); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// figure returns the named figure of Stats.
func figure(k kind, s subject, name string) int64 {
	v := reflect.ValueOf(k.stats(s)).FieldByName(name)
	if v.CanUint() {
		return int64(v.Uint())
	}
	return v.Int()
}

func wantRefusals(t *testing.T, k kind, s subject, why string) {
	t.Helper()
	for _, calls := range []map[string]func(subject){k.reads, k.changes} {
		for name, call := range calls {
			panics.Want(t, "freehold: "+k.name+"."+name+": "+why, func() { call(s) })
		}
	}
}

// unasked are calls that take only a few loads, and so do not check whether the parent is
// closed.
var unasked = map[string]bool{
	"hashmap.Map.Get": true, "hashmap.Shared.Get": true, "intern.Strings.Value": true, "intern.Shared.Value": true,
	"vector.Vector.At": true, "vector.Vector.Slice": true, "vector.Vector.Append": true, "vector.Vector.Pop": true,
	"vector.Vector.Set": true, "vector.Chunked.At": true, "vector.Chunked.Append": true,
}

// TestClosedParents: all other calls of a container panic if its parent is closed, and say so.
func TestClosedParents(t *testing.T) {
	heap := func() (freehold.Allocator, func()) {
		h := freehold.NewHeap(&freehold.HeapOptions{Name: "of a test"})
		return h, h.Close
	}
	parents := []struct {
		why  string
		make func() (parent freehold.Allocator, close func())
	}{
		{`heap "of a test" is closed`, heap},
		{`heap "of a test" is closed`, func() (freehold.Allocator, func()) {
			h, end := heap()
			return freehold.NewLimit(freehold.NewTagged(h, "tag"), 1<<30), end
		}},
		{"the arena is closed", func() (freehold.Allocator, func()) {
			a := arena.New(freehold.Pages(), nil)
			return freehold.NewLocked(a), a.Close
		}},
		{"the arena is closed", func() (freehold.Allocator, func()) {
			a := arena.NewShared(freehold.Pages(), nil)
			return a, a.Close
		}},
	}
	for _, k := range kinds {
		for _, p := range parents {
			parent, end := p.make()
			s := filled(t, k, parent, "")
			end()
			for _, calls := range []map[string]func(subject){k.reads, k.changes} {
				for name, call := range calls {
					if !unasked[k.name+"."+name] {
						panics.Want(t, "freehold: "+k.name+"."+name+": "+p.why, func() { call(s) })
					}
				}
			}
			panics.Want(t, "freehold: "+k.name+".Close: "+p.why, s.Close)
		}
	}
}

// TestCloseAfterTheParent: Close of an arena or a buffer panics in its own name if the heap is
// closed.
func TestCloseAfterTheParent(t *testing.T) {
	for call, fill := range map[string]func(h *freehold.Heap) (end func()){
		"arena.Arena": func(h *freehold.Heap) func() {
			a := arena.New(h, nil)
			a.Alloc(1, 1)
			return a.Close
		},
		"arena.Shared": func(h *freehold.Heap) func() {
			a := arena.NewShared(h, nil)
			a.Alloc(1, 1)
			return a.Close
		},
		"buffer.Buffer": func(h *freehold.Heap) func() {
			b := buffer.New(h, nil)
			b.WriteByte(1)
			return func() { b.Close() }
		},
	} {
		h := freehold.NewHeap(&freehold.HeapOptions{Name: "gone"})
		end := fill(h)
		h.Close()
		panics.Want(t, "freehold: "+call+`.Close: heap "gone" is closed`, end)
	}
}

// TestParentsForOneGoroutine: a container for several goroutines refuses a parent for one
// goroutine, also inside a wrapper, and accepts it behind a lock. Other containers accept it as
// it is.
func TestParentsForOneGoroutine(t *testing.T) {
	shared := map[string]bool{"hashmap.Shared": true, "intern.Shared": true, "cache.Cache": true}
	a := arena.New(freehold.Pages(), nil)
	defer a.Close()
	for _, k := range kinds {
		for what, parent := range map[string]freehold.Allocator{
			"*arena.Arena": a, "*freehold.Limit": freehold.NewLimit(a, 1<<20),
			"*freehold.fallback": freehold.NewFallback(freehold.Pages(), a),
		} {
			if shared[k.name] {
				panics.Want(t, "freehold: "+k.maker+": parent is a "+what+", which is for one goroutine...", func() { k.make(parent, "") })
				parent = freehold.NewLocked(parent)
			}
			k.make(parent, "").Close()
		}
	}
}

type updater interface {
	Put(k, v int) error
	Get(k int) (v int, ok bool)
	Update(k int, fn func(v *int, found bool)) error
}

// A panic inside Update leaves the map unchanged. An Update function that changes its Map panics.
// One that changes its Shared would deadlock, so the test omits it.
func TestUpdate(t *testing.T) {
	for _, k := range kinds {
		s := k.make(alloctest.New(t), "")
		defer s.Close()
		m, ok := s.(updater)
		if !ok {
			continue
		}
		m.Put(1, 10)
		for key := range 3 {
			panics.Want(t, "mine", func() { m.Update(key, func(v *int, _ bool) { *v = 99; panic("mine") }) })
		}
		if v, ok := m.Get(1); s.Len() != 1 || !ok || v != 10 {
			t.Errorf("%s: after the panic %d entries, and %d, %t", k.name, s.Len(), v, ok)
		}
		if k.name != "hashmap.Shared" {
			for _, key := range []int{1, 2} {
				m.Update(key, func(v *int, _ bool) {
					for name, call := range k.changes {
						panics.Want(t, "freehold: "+k.name+"."+name+": a function...", func() { call(s) })
					}
					panics.Want(t, "freehold: "+k.name+".Close: a function...", s.Close)
					m.Get(1)
					*v = 20
				})
			}
		}
		if err := m.Put(2, 20); err != nil || s.Len() != 2 {
			t.Errorf("%s: afterwards %v, and %d entries", k.name, err, s.Len())
		}
	}
}

// -0 and +0 are one key. The map keeps the sign of the last Put, as Go's map does.
func TestZeroes(t *testing.T) {
	type floats interface {
		Put(float64, int) error
		All() iter.Seq2[float64, int]
		Close()
	}
	a := alloctest.New(t)
	for _, m := range []floats{hashmap.New[float64, int](a, nil), hashmap.NewShared[float64, int](a, nil), btree.New[float64, int](a, nil)} {
		want := map[float64]int{}
		for i, zero := range []float64{0, math.Copysign(0, -1), 0} {
			m.Put(zero, i)
			want[zero] = i
			for k, v := range m.All() {
				for wantKey := range want {
					if len(want) != 1 || math.Signbit(k) != math.Signbit(wantKey) || v != i {
						t.Errorf("%T: %v: %d after Put of %v: %d", m, k, v, zero, i)
					}
				}
			}
		}
		m.Close()
	}
}
