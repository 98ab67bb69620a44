package pool_test

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/epoch"
	"github.com/freehold-go/freehold/pool"
)

type node struct {
	key   uint64
	value [3]uint32
	next  pool.Handle[node]
}

// newPool returns a pool over a parent that fails t on leaks and overruns.
func newPool[T any](t testing.TB, o *pool.Options) *pool.Pool[T] {
	p := pool.New[T](alloctest.New(t), o)
	t.Cleanup(p.Close)
	return p
}

func TestGetGivesZeros(t *testing.T) {
	p := newPool[node](t, nil)
	c := p.NewCache()
	defer c.Close()
	for range 300 {
		n, m := freehold.Must(p.Get()), freehold.Must(c.Get())
		if *n != (node{}) || *m != (node{}) {
			t.Fatal("not zero")
		}
		*n = node{key: 1, value: [3]uint32{1, 2, 3}}
		*m = *n
		p.Put(n)
		c.Put(m)
	}
	p.Put(nil)
	if n := p.Live(); n != 0 {
		t.Errorf("%d live", n)
	}
}

func TestTypesOfAllSizes(t *testing.T) {
	pairsOf[struct{}](t)
	pairsOf[byte](t)
	pairsOf[[3]byte](t)
	pairsOf[uint64](t)
	pairsOf[[5]uint16](t)
	pairsOf[[1000]byte](t)
	pairsOf[[70000]byte](t)
}

func pairsOf[T any](t *testing.T) {
	p := newPool[T](t, nil)
	seen := map[*T]bool{}
	var all []*T
	for range 100 {
		v := freehold.Must(p.Get())
		if uintptr(unsafe.Pointer(v))%unsafe.Alignof(*v) != 0 {
			t.Errorf("%T: not aligned", *v)
		}
		if seen[v] {
			t.Fatalf("%T: handed out twice", *v)
		}
		seen[v] = true
		all = append(all, v)
	}
	for _, v := range all {
		p.Put(v)
	}
}

func TestHandleKnowsWhenItsValueIsGone(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one stack
	p := newPool[node](t, nil)
	n := freehold.Must(p.Get())
	h := p.Handle(n)
	if got, ok := p.Lookup(h); got != n || !ok {
		t.Errorf("%p, %t; want %p", got, ok, n)
	}
	p.Put(n)
	gone := func(h pool.Handle[node]) {
		t.Helper()
		if got, ok := p.Lookup(h); got != nil || ok {
			t.Errorf("%p, %t for a value that is gone", got, ok)
		}
	}
	gone(h)
	gone(pool.Handle[node]{})
	wantPanic(t, func() { p.Handle(n) }, "the block is free")

	m := freehold.Must(p.Get())
	if m != n {
		t.Fatal("the place was not used again; the test needs that")
	}
	gone(h)
	h = p.Handle(m)
	p.Retire(m)
	gone(h)
	p.Trim()
	for range 100 { // the parent may return the same addresses
		m = freehold.Must(p.Get())
		gone(h)
		p.Put(m)
		p.Trim()
	}
	m = freehold.Must(p.Get())
	h = p.Handle(m)
	p.Reset()
	gone(h)
	m = freehold.Must(p.Get())
	gone(h)
	other := newPool[node](t, nil)
	if _, ok := other.Lookup(p.Handle(m)); ok {
		t.Error("found in another pool")
	}
	h = p.Handle(m)
	p.Close()
	gone(h)
}

// A handle stays unique when the parent hands the same memory to another pool.
func TestHandleOfClosedPool(t *testing.T) {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	var old []pool.Handle[node]
	seen := map[*node]bool{}
	again := 0
	for range 10 {
		p := pool.New[node](heap, nil)
		var handles []pool.Handle[node]
		for range 100 {
			n := freehold.Must(p.Get())
			handles = append(handles, p.Handle(n))
			if seen[n] {
				again++
			}
			seen[n] = true
		}
		for _, h := range old {
			if _, ok := p.Lookup(h); ok {
				t.Fatal("a handle of a closed pool found a value")
			}
		}
		old = append(old, handles...)
		p.Close()
	}
	if again == 0 {
		t.Error("no address came back; the test needs that")
	}
}

// In peer libraries a generation of 8 bits wraps, and a stale reference reads the new value.
func TestGenerationDoesNotWrap(t *testing.T) {
	p := newPool[node](t, nil)
	n := freehold.Must(p.Get())
	stale := p.Handle(n)
	for range 1<<17 + 1 {
		p.Put(n)
		if _, ok := p.Lookup(stale); ok {
			t.Fatal("the generation has wrapped")
		}
		n = freehold.Must(p.Get())
	}
	p.Put(n)
}

func TestRetiredValuesAreFreedByLaterOnes(t *testing.T) {
	p := newPool[node](t, nil)
	for range 100000 {
		p.Retire(freehold.Must(p.Get()))
	}
	if s := p.Stats(); s.Blocks > 5000 || s.Retired > 1000 {
		t.Errorf("%+v", s)
	}
}

// FuzzPool reads its input as a program: each pair of bytes is an operation
// and its argument. A model knows which values are live: none is handed out twice, none
// is lost, and each second free is detected.
func FuzzPool(f *testing.F) {
	f.Add([]byte{0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0})
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		prog := make([]byte, 400)
		for i := range prog {
			prog[i] = byte(r.Uint32())
		}
		f.Add(prog)
	}
	f.Fuzz(func(t *testing.T, prog []byte) {
		p := pool.New[node](alloctest.New(t), &pool.Options{MaxBlocks: 300})
		m := poolModel{t: t, p: p, c: p.NewCache(), other: p.NewCache(), live: map[*node]uint64{}, guarded: map[*node]bool{}}
		for ; len(prog) >= 2; prog = prog[2:] {
			m.step(prog[0], int(prog[1]))
		}
		m.finish()
	})
}

type poolModel struct {
	t       *testing.T
	p       *pool.Pool[node]
	c       *pool.Cache[node]
	other   *pool.Cache[node]
	guard   *epoch.Guard
	live    map[*node]uint64
	guarded map[*node]bool // retired since the guard was entered
	order   []*node
	seq     uint64
	dead    []pool.Handle[node]
}

func (m *poolModel) step(op byte, arg int) {
	switch op % 12 {
	case 0, 1, 2, 3:
		get := m.p.Get
		if op%2 == 0 {
			get = m.c.Get
		}
		m.c, m.other = m.other, m.c
		for range arg%40 + 1 {
			n, err := get()
			if err != nil {
				if m.p.Stats().Blocks != 300 {
					m.t.Fatal(err)
				}
				return
			}
			if _, ok := m.live[n]; ok || m.guarded[n] || *n != (node{}) {
				m.t.Fatal("a live value, one that a guard protects, or not zero")
			}
			m.seq++
			n.key = m.seq
			m.live[n] = m.seq
			m.order = append(m.order, n)
		}
	case 4, 5, 6, 7, 8:
		for range arg%40 + 1 {
			if len(m.order) == 0 {
				return
			}
			i := len(m.order) - 1
			if arg >= 64 {
				i = arg % len(m.order)
			}
			n := m.order[i]
			m.order = append(m.order[:i], m.order[i+1:]...)
			if n.key != m.live[n] {
				m.t.Fatalf("value %d has become %d", m.live[n], n.key)
			}
			delete(m.live, n)
			h := m.p.Handle(n)
			if len(m.dead) < 50 {
				m.dead = append(m.dead, h)
			}
			switch op % 12 {
			case 4, 5:
				m.p.Put(n)
			case 6:
				m.c.Put(n)
			case 7:
				m.p.Retire(n)
				m.guarded[n] = m.guard != nil
			case 8:
				m.p.PutHandle(h)
			}
			wantPanic(m.t, func() { m.p.Put(n) })
			wantPanic(m.t, func() { m.c.Put(n) })
			wantPanic(m.t, func() { m.p.Handle(n) })
			wantPanic(m.t, func() { m.p.PutHandle(h) }, "the value is gone")
		}
	case 9:
		m.p.Trim()
	case 10:
		if m.guard == nil {
			g := m.p.Enter()
			m.guard = &g
		} else {
			m.guard.Leave()
			m.guard = nil
			clear(m.guarded)
		}
	case 11:
		if arg%2 == 0 {
			m.c.Close()
			m.c = m.p.NewCache()
		} else if arg%16 == 1 {
			m.p.Reset()
			m.live, m.order = map[*node]uint64{}, nil
			clear(m.guarded)
		}
	}
	if n := m.p.Live(); n != len(m.live) {
		m.t.Fatalf("Live is %d, want %d", n, len(m.live))
	}
	for _, h := range m.dead {
		if _, ok := m.p.Lookup(h); ok {
			m.t.Fatal("a handle found a value that is gone")
		}
	}
}

func (m *poolModel) finish() {
	if m.guard != nil {
		m.guard.Leave()
	}
	m.c.Close()
	m.other.Close()
	for _, n := range m.order {
		m.p.Put(n)
	}
	for i := range 300 {
		if _, err := m.p.Get(); err != nil {
			m.t.Fatalf("%d values of 300: %v", i, err)
		}
	}
	m.p.Reset()
	closeEmpty(m.t, m.p)
}
