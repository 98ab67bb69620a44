package btree

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// A kind is a K and V to test. Keys are made of numbers from 0 up to keys, in order.
type kind[K, V any] struct {
	name    string
	keys    int
	key     func(i int) K
	value   func(i int) V
	open    func(freehold.Allocator, *Options) *Map[K, V]
	compare func(a, b K) int
}

// An entry is one of a model.
type entry struct{ key, value int }

// A model is what a map must hold: a sorted slice.
type model[K any, V comparable] struct {
	t       testing.TB
	kind    kind[K, V]
	faucet  *faucet
	m       *Map[K, V]
	entries []entry
	seed    int
	twins   []twin[K, V]
}

// A twin is a map that shares nodes with the model's, and what it must hold.
type twin[K, V any] struct {
	m       *Map[K, V]
	entries []entry
}

// A faucet is an allocator that fails once left allocations have succeeded, unless that
// is negative.
type faucet struct {
	freehold.Allocator
	left int
}

func (f *faucet) Alloc(size, align int) ([]byte, error) {
	if f.left == 0 && size > 0 {
		return nil, fmt.Errorf("%w: the faucet is closed", freehold.ErrOutOfMemory)
	}
	f.left--
	return f.Allocator.Alloc(size, align)
}

func newModel[K any, V comparable](t testing.TB, k kind[K, V], parent freehold.Allocator, ranks bool) *model[K, V] {
	f := &faucet{parent, -1}
	return &model[K, V]{t: t, kind: k, faucet: f, m: k.open(f, &Options{Ranks: ranks})}
}

// run reads prog as a program: each four bytes are an operation and its arguments. After
// each step the tree must be whole, and the same as the model.
func (m *model[K, V]) run(prog []byte) {
	for ; len(prog) >= 4; prog = prog[4:] {
		op, x, n := prog[0], (int(prog[1])<<8|int(prog[2]))%m.kind.keys, int(prog[3])
		m.step(op%21, x, n)
		m.same()
	}
	m.m.Close()
	for _, twin := range m.twins {
		twin.m.Close()
	}
}

func (m *model[K, V]) step(op byte, x, n int) {
	switch op {
	case 0, 1: // ascending
		for i := range n {
			m.put((x + i) % m.kind.keys)
		}
	case 2: // descending
		for i := range n {
			m.put((x + n - i) % m.kind.keys)
		}
	case 3, 4: // anywhere
		for i := range n {
			m.put((x + i*i*977) % m.kind.keys)
		}
	case 5:
		for i := range n {
			m.delete((x + i) % m.kind.keys)
		}
	case 6: // some that are there
		for i := range n {
			if len(m.entries) > 0 {
				m.delete(m.entries[(x+i*i*31)%len(m.entries)].key)
			}
		}
	case 7:
		m.deleteRange(x, min(x+n*n/16, m.kind.keys-1))
	case 8:
		m.deleteFunc(x%7+1, n%11)
	case 9:
		m.putIfAbsent(x)
		m.update((x+n)%m.kind.keys, n)
	case 10:
		m.load(x, n)
	case 11:
		m.ranges(x, min(x+n*n/16, m.kind.keys-1))
	case 12:
		m.changes(x, n)
	case 13:
		m.exhausted(x, n)
	case 14:
		if n%8 == 0 {
			m.m.Clear()
			m.entries = nil
		}
	case 15:
		m.get(x)
	case 17:
		m.cursor(x, n)
	case 18:
		for i := range n {
			m.computeOrTake((x+i*i*977)%m.kind.keys, i)
		}
	case 19:
		for i := range n { // of some that are there
			if len(m.entries) > 0 {
				m.computeOrTake(m.entries[(x+i*i*31)%len(m.entries)].key, i)
			}
		}
	case 20:
		m.clone(x, n)
	case 16: // until few are left, from one end
		for len(m.entries) > n {
			at := 0
			if x%2 == 0 {
				at = len(m.entries) - 1
			}
			m.delete(m.entries[at].key)
		}
	}
}

func (m *model[K, V]) find(x int) (int, bool) {
	return slices.BinarySearchFunc(m.entries, x, func(e entry, x int) int { return e.key - x })
}

// set is a put of the model.
func (m *model[K, V]) set(x, value int) {
	if i, ok := m.find(x); ok {
		m.entries[i].value = value
	} else {
		m.entries = slices.Insert(m.entries, i, entry{x, value})
	}
}

func (m *model[K, V]) put(x int) {
	m.seed++
	if err := m.m.Put(m.kind.key(x), m.kind.value(m.seed)); err != nil {
		m.t.Fatalf("Put: %v", err)
	}
	m.set(x, m.seed)
}

func (m *model[K, V]) delete(x int) {
	i, want := m.find(x)
	if want {
		m.entries = slices.Delete(m.entries, i, i+1)
	}
	if got := m.m.Delete(m.kind.key(x)); got != want {
		m.t.Fatalf("Delete of key %d: %t, want %t", x, got, want)
	}
}

// computeOrTake calls Compute with each Change and Take, in turn.
func (m *model[K, V]) computeOrTake(x, turn int) {
	i, want := m.find(x)
	var was V
	if want {
		was = m.kind.value(m.entries[i].value)
	}
	k, change := m.kind.key(x), freehold.Change(turn%4)
	old, found, err := was, want, error(nil)
	if change > freehold.Remove {
		old, found = m.m.Take(k)
	} else {
		m.seed++
		old, found, err = m.m.Compute(k, func(v *V, found bool) freehold.Change {
			if got, ok := m.m.Get(k); *v != was || found != want || ok != want || got != was {
				m.t.Fatalf("Compute of key %d: %t and another value than before", x, found)
			}
			*v = m.kind.value(m.seed)
			return change
		})
	}
	if old != was || found != want || err != nil {
		m.t.Fatalf("%d of key %d: %t, want %t, or another value, %v", change, x, found, want, err)
	}
	switch {
	case change == freehold.Store:
		m.set(x, m.seed)
	case change >= freehold.Remove && want:
		m.entries = slices.Delete(m.entries, i, i+1)
	}
}

func (m *model[K, V]) deleteRange(lo, hi int) {
	i, _ := m.find(lo)
	j, _ := m.find(hi)
	want := max(j-i, 0)
	m.entries = slices.Delete(m.entries, i, i+want)
	if got := m.m.DeleteRange(m.kind.key(lo), m.kind.key(hi)); got != want {
		m.t.Fatalf("DeleteRange of keys from %d to %d: %d entries, want %d", lo, hi, got, want)
	}
}

// deleteFunc deletes the entries whose value is rest modulo mod, and sets some others.
func (m *model[K, V]) deleteFunc(mod, rest int) {
	i := 0
	doomed := func(e entry) bool { return e.value%mod == rest%mod }
	got := m.m.DeleteFunc(func(k K, v *V) bool {
		e := &m.entries[i]
		if m.kind.compare(k, m.kind.key(e.key)) != 0 || *v != m.kind.value(e.value) {
			m.t.Fatalf("DeleteFunc: entry %d is not key %d with value %d", i, e.key, e.value)
		}
		i++
		if !doomed(*e) && e.key%5 == 0 {
			e.value += mod
			*v = m.kind.value(e.value)
		}
		return doomed(*e)
	})
	before := len(m.entries)
	m.entries = slices.DeleteFunc(m.entries, doomed)
	if i != before || got != before-len(m.entries) {
		m.t.Fatalf("DeleteFunc deleted %d entries and saw %d, want %d of %d", got, i, before-len(m.entries), before)
	}
}

func (m *model[K, V]) putIfAbsent(x int) {
	m.seed++
	i, want := m.find(x)
	value := m.seed
	if want {
		value = m.entries[i].value
	}
	v, found, err := m.m.PutIfAbsent(m.kind.key(x), m.kind.value(m.seed))
	if err != nil || found != want || v != m.kind.value(value) {
		m.t.Fatalf("PutIfAbsent of key %d: found %t, error %v, or another value than %d", x, found, err, value)
	}
	m.set(x, value)
}

func (m *model[K, V]) update(x, n int) {
	i, want := m.find(x)
	var before V
	if want {
		before = m.kind.value(m.entries[i].value)
	}
	type planned struct{}
	func() {
		defer func() {
			if p := recover(); p != nil && p != (planned{}) {
				panic(p)
			}
		}()
		m.seed++
		err := m.m.Update(m.kind.key(x), func(v *V, found bool) {
			if found != want || *v != before {
				m.t.Fatalf("Update of key %d: found %t, or another value", x, found)
			}
			if n%4 == 0 {
				panic(planned{})
			}
			*v = m.kind.value(m.seed)
		})
		if err != nil {
			m.t.Fatalf("Update: %v", err)
		}
		m.set(x, m.seed)
	}()
}

// load loads n keys behind the last one, and fails in one of the ways if x says so.
func (m *model[K, V]) load(x, n int) {
	first := 0
	if len(m.entries) > 0 {
		first = m.entries[len(m.entries)-1].key + 1
	}
	n = min(n, m.kind.keys-first)
	if n <= 0 {
		return
	}
	fails := x%3 == 0
	err := m.m.Load(func(yield func(K, V) bool) {
		for i := range n {
			if !yield(m.kind.key(first+i), m.kind.value(i)) {
				return
			}
		}
		if fails {
			yield(m.kind.key(first+x%n), m.kind.value(0))
		}
	})
	if fails {
		if !errors.Is(err, ErrUnsorted) {
			m.t.Fatalf("Load of keys that do not ascend: %v", err)
		}
		return
	}
	if err != nil {
		m.t.Fatalf("Load: %v", err)
	}
	for i := range n {
		m.entries = append(m.entries, entry{first + i, i})
	}
}

// exhausted puts keys, each as soon as enough allocations succeed, and loads some while
// no more than a few do.
func (m *model[K, V]) exhausted(x, n int) {
	for i := range n {
		at := (x + i*i*31) % m.kind.keys
		m.seed++
		key, value := m.kind.key(at), m.kind.value(m.seed)
		_, found := m.find(at)
		for left := 0; ; left++ {
			before := m.figures()
			m.faucet.left = left
			err := [...]func() error{
				func() error { return m.m.Put(key, value) },
				func() error { _, _, err := m.m.PutIfAbsent(key, value); return err },
				func() error { return m.m.Update(key, func(v *V, _ bool) { *v = value }) },
				func() error {
					_, _, err := m.m.Compute(key, func(v *V, _ bool) freehold.Change { *v = value; return freehold.Store })
					return err
				},
			}[i%4]()
			if err == nil {
				break
			}
			if st := m.figures(); !errors.Is(err, freehold.ErrOutOfMemory) || st != before || found && !m.m.cloned {
				m.t.Fatalf("a call fails after %d allocations: %v, %+v, and %+v before", left, err, st, before)
			}
			m.m.check()
		}
		if !found || i%4 != 1 {
			m.set(at, m.seed)
		}
	}
	m.deleteExhausted(x, n%8)
	if len(m.entries) > 0 {
		m.faucet.left = n % 8
		first := m.entries[len(m.entries)-1].key + 1
		err := m.m.Load(func(yield func(K, V) bool) {
			for i := first; i < m.kind.keys && yield(m.kind.key(i), m.kind.value(0)); i++ {
			}
		})
		switch {
		case err == nil:
			for i := first; i < m.kind.keys; i++ {
				m.entries = append(m.entries, entry{i, 0})
			}
		case !errors.Is(err, freehold.ErrOutOfMemory):
			m.t.Fatalf("Load: %v", err)
		}
	}
	m.faucet.left = -1
}

// figures is Stats without spare nodes, which a call that fails may have freed.
func (m *model[K, V]) figures() Stats {
	st := m.m.Stats()
	st.Reserved -= m.m.spare[0].n*m.m.leaf.bytes + m.m.spare[1].n*m.m.inner.bytes
	return st
}

// deleteExhausted deletes n entries, each as soon as enough allocations succeed. Without clones none
// is needed.
func (m *model[K, V]) deleteExhausted(x, n int) {
	for ; n > 0 && len(m.entries) > 0; n-- {
		i := x * n % len(m.entries)
		key := m.kind.key(m.entries[i].key)
		cloned := m.m.cloned
		for left := 0; ; left++ {
			before := m.figures()
			m.faucet.left = left
			failed := false
			if n%2 == 0 {
				_, _, err := m.m.Compute(key, func(*V, bool) freehold.Change { return freehold.Remove })
				failed = err != nil
			} else {
				func() {
					defer func() { failed = recover() != nil }()
					m.m.Delete(key)
				}()
			}
			m.faucet.left = -1
			if !failed {
				break
			}
			if m.m.check(); !cloned || m.figures() != before {
				m.t.Fatalf("a Delete fails after %d allocations: %+v, and %+v before", left, m.m.Stats(), before)
			}
		}
		m.entries = slices.Delete(m.entries, i, i+1)
	}
}

// clone clones the map, goes on with one that was cloned before, or closes one, as n says.
func (m *model[K, V]) clone(x, n int) {
	if n%4 == 0 || len(m.twins) == 0 {
		m.twins = append(m.twins, twin[K, V]{m.m.Clone(), slices.Clone(m.entries)})
		return
	}
	twin := &m.twins[x%len(m.twins)]
	m.m, twin.m, m.entries, twin.entries = twin.m, m.m, twin.entries, m.entries
	if n%4 == 1 {
		twin.m.Close()
		*twin = m.twins[len(m.twins)-1]
		m.twins = m.twins[:len(m.twins)-1]
	}
}

func (m *model[K, V]) get(x int) {
	i, want := m.find(x)
	v, ok := m.m.Get(m.kind.key(x))
	p := m.m.At(m.kind.key(x))
	if ok != want || (p != nil) != want {
		m.t.Fatalf("Get of key %d: %t, At %p, want %t", x, ok, p, want)
	}
	if ok && (v != m.kind.value(m.entries[i].value) || *p != v) {
		m.t.Fatalf("Get or At of key %d: another value than %d", x, m.entries[i].value)
	}
}

// ranges compares all iterators with the model.
func (m *model[K, V]) ranges(lo, hi int) {
	i, _ := m.find(lo)
	j, found := m.find(hi)
	m.compare("From", m.m.From(m.kind.key(lo)), m.entries[i:])
	m.compare("Range", m.m.Range(m.kind.key(lo), m.kind.key(hi)), m.entries[i:max(i, j)])
	m.compare("empty Range", m.m.Range(m.kind.key(hi), m.kind.key(lo)), nil)
	if found {
		j++
	}
	down := slices.Clone(m.entries[:j])
	slices.Reverse(down)
	m.compare("BackwardFrom", m.m.BackwardFrom(m.kind.key(hi)), down)
	for range m.m.BackwardFrom(m.kind.key(hi)) {
		break
	}
}

func (m *model[K, V]) compare(name string, got func(func(K, V) bool), want []entry) {
	i := 0
	for k, v := range got {
		if i == len(want) {
			m.t.Fatalf("%s has more than %d entries", name, len(want))
		}
		if e := want[i]; m.kind.compare(k, m.kind.key(e.key)) != 0 || v != m.kind.value(e.value) {
			m.t.Fatalf("%s: entry %d is not key %d with value %d", name, i, e.key, e.value)
		}
		i++
	}
	if i != len(want) {
		m.t.Fatalf("%s has %d entries, want %d", name, i, len(want))
	}
}

// rank compares the index of some keys, which the map has or not, and the entries there.
func (m *model[K, V]) rank(x int) {
	for i := range 20 {
		key := (x + i*i*977) % m.kind.keys
		at, found := m.find(key)
		if index, ok := m.m.Rank(m.kind.key(key)); index != at || ok != found {
			m.t.Fatalf("Rank of key %d: %d, %t, want %d, %t", key, index, ok, at, found)
		}
		k, v, ok := m.m.GetAt(at)
		if ok != (at < len(m.entries)) || ok && (m.kind.compare(k, m.kind.key(m.entries[at].key)) != 0 || v != m.kind.value(m.entries[at].value)) {
			m.t.Fatalf("GetAt(%d) of %d: %t, or another entry", at, len(m.entries), ok)
		}
	}
	if _, _, ok := m.m.GetAt(-1); ok {
		m.t.Fatal("GetAt(-1) has an entry")
	}
}

// changes deletes and puts entries while iterating. The iterator must yield what is the
// next key at that time.
func (m *model[K, V]) changes(x, n int) {
	seen, at := 0, -1
	m.m.From(m.kind.key(x))(func(k K, v V) bool {
		next, _ := m.find(max(x, at+1))
		if next == len(m.entries) || m.kind.compare(k, m.kind.key(m.entries[next].key)) != 0 {
			m.t.Fatalf("an iterator behind key %d yields another one than the next", at)
		}
		at = m.entries[next].key
		seen++
		m.change(at, seen, n)
		return seen < 50
	})
	if len(m.entries) == 0 {
		return
	}
	seen, at = 0, m.kind.keys
	m.m.Backward()(func(k K, v V) bool {
		next, _ := m.find(at)
		if next == 0 || m.kind.compare(k, m.kind.key(m.entries[next-1].key)) != 0 {
			m.t.Fatalf("an iterator before key %d yields another one than the next", at)
		}
		at = m.entries[next-1].key
		seen++
		m.change(at, seen, n)
		return seen < 50
	})
}

func (m *model[K, V]) change(at, seen, n int) {
	switch (seen + n) % 5 {
	case 0:
		m.delete(at)
	case 1:
		m.put((at + 1) % m.kind.keys)
	case 2:
		m.deleteRange(max(at-n, 0), min(at+n%5, m.kind.keys-1))
	case 3:
		m.put(at) // which changes only its value
	}
}

// cursor moves a cursor in all ways while entries are put and deleted. at is the key that it must
// be at, or one beside all keys.
func (m *model[K, V]) cursor(x, n int) {
	c, at := m.m.Cursor(), -1
	for step := range 50 {
		i, found := m.find(at)
		next := i
		if found {
			next++
		}
		var ok bool
		switch r := step*step + n; {
		case step == 0 || r%7 == 0:
			ok, i = c.Seek(m.kind.key(x)), 0
			i, _ = m.find(x)
		case r%11 == 0:
			ok, i = c.First(), 0
		case r%13 == 0:
			ok, i = c.Last(), len(m.entries)-1
		case r%3 == 0:
			ok, i = c.Prev(), i-1
		default:
			ok, i = c.Next(), next
		}
		if want := i >= 0 && i < len(m.entries); ok != want {
			m.t.Fatalf("the cursor moves from key %d: %t, want %t", at, ok, want)
		}
		switch {
		case ok:
			at = m.entries[i].key
			if k := c.Key(); m.kind.compare(k, m.kind.key(at)) != 0 || *c.Value() != m.kind.value(m.entries[i].value) {
				m.t.Fatalf("the cursor is not at key %d with value %d", at, m.entries[i].value)
			}
			m.change(at, step, n)
			i, found = m.find(at)
			if v := c.Value(); (v != nil) != found || found && *v != m.kind.value(m.entries[i].value) || m.kind.compare(c.Key(), m.kind.key(at)) != 0 {
				m.t.Fatalf("the cursor is not at key %d after a change", at)
			}
		case i < 0:
			at = -1
		default:
			at = m.kind.keys
		}
	}
}

// same compares the map with the model, and checks the tree.
func (m *model[K, V]) same() {
	m.m.check()
	if m.m.Len() != len(m.entries) {
		m.t.Fatalf("Len is %d, want %d", m.m.Len(), len(m.entries))
	}
	m.compare("All", m.m.All(), m.entries)
	for _, twin := range m.twins {
		twin.m.check()
		m.compare("All of a clone", twin.m.All(), twin.entries)
	}
	if m.m.ranks {
		m.rank(m.seed)
	}
	least, _, ok := m.m.Min()
	greatest, _, ok2 := m.m.Max()
	if n := len(m.entries); ok != (n > 0) || ok2 != ok ||
		ok && (m.kind.compare(least, m.kind.key(m.entries[0].key)) != 0 || m.kind.compare(greatest, m.kind.key(m.entries[n-1].key)) != 0) {
		m.t.Fatalf("Min or Max is wrong, of %d entries", n)
	}
}

// randomProgram returns a program of some steps.
func randomProgram(seed uint64, steps int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	prog := make([]byte, 4*steps)
	for i := range prog {
		prog[i] = byte(r.Uint32())
	}
	return prog
}

// testKind runs random programs on a kind.
func testKind[K any, V comparable](t *testing.T, k kind[K, V]) {
	t.Run(k.name, func(t *testing.T) {
		rounds := 6
		if testing.Short() {
			rounds = 1
		}
		for seed := range rounds {
			for _, ranks := range []bool{false, true} {
				newModel(t, k, alloctest.New(t), ranks).run(randomProgram(uint64(seed), 60))
			}
		}
	})
}
