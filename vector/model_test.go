package vector

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/chunks"
	"github.com/freehold-go/freehold/internal/poison"
)

// elem is an element of models, with padding.
type elem struct {
	a uint64
	b uint16
}

// A model runs each operation on a Vector, a Chunked and a slice.
type model struct {
	t    testing.TB
	v    *Vector[elem]
	c    *Chunked[elem]
	want []elem
	held []*elem // of c, as long as want
	next uint64
}

func newModel(t testing.TB, forVector, forChunked freehold.Allocator) *model {
	return &model{t: t, v: New[elem](forVector, nil), c: NewChunked[elem](forChunked, nil)}
}

// run reads prog as a program: each three bytes are an operation and its arguments.
func (m *model) run(prog []byte) {
	for ; len(prog) >= 3; prog = prog[3:] {
		m.step(prog[0], int(prog[1]), int(prog[2]))
		m.verify()
	}
}

func (m *model) fresh(n int) (s []elem) {
	for range n {
		m.next++
		s = append(s, elem{m.next * 0x9E3779B97F4A7C15, uint16(m.next)})
	}
	return s
}

func (m *model) step(op byte, x, y int) {
	n := len(m.want)
	i, j := 0, 0
	if n > 0 {
		i = x % n
		j = i + y%(n-i+1)
	}
	switch op % 16 {
	case 0, 1, 2, 3:
		m.add(m.fresh(1), func(s []elem) error { return m.v.Append(s[0]) })
	case 4, 5:
		m.add(m.fresh(x%50), m.v.AppendSlice)
	case 6: // a part of itself
		m.add(slices.Clone(m.want[i:j]), func([]elem) error { return m.v.AppendSlice(m.v.Slice()[i:j]) })
	case 7:
		m.insert(x%(n+1), m.fresh(y%20), nil)
	case 8: // a part of itself
		m.insert((x+3*y)%(n+1), slices.Clone(m.want[i:j]), func() []elem { return m.v.Slice()[i:j] })
	case 9:
		m.v.Delete(i, j)
		m.want = slices.Delete(slices.Clone(m.want), i, j)
		m.rebuild()
	case 10:
		e, ok := m.v.Pop()
		if ok != (n > 0) || ok && e != m.want[n-1] {
			m.t.Fatalf("Pop: %v, %t", e, ok)
		}
		if ok {
			m.truncate(n - 1)
		}
	case 11:
		m.v.Truncate(i)
		m.truncate(i)
	case 12:
		for _, s := range []struct {
			grow     func(int) error
			capacity func() int
		}{{m.v.Grow, m.v.Cap}, {m.c.Grow, m.c.Cap}} {
			before := s.capacity()
			err := s.grow(x)
			m.mustBeMemory(err)
			if room := s.capacity() - n; err == nil && room < x || err != nil && room != before-n {
				m.t.Fatalf("room for %d after Grow(%d): %v, and %d before", room, x, err, before-n)
			}
		}
	case 13:
		m.v.Clip()
		m.c.Clip()
		blocks := uint(0)
		for int(chunks.Start(blocks, m.c.first)) < n {
			blocks++
		}
		if want := int(chunks.Start(blocks, m.c.first)); m.c.Cap() != want {
			m.t.Fatalf("capacity %d for %d after Clip, want %d", m.c.Cap(), n, want)
		}
	case 14:
		if n > 0 {
			e := m.fresh(1)[0]
			m.v.Set(i, e)
			*m.c.At(i) = e
			m.want[i] = e
		}
	case 15:
		if y%16 == 0 {
			m.v.Clear()
			m.c.Clear()
			m.want, m.held = nil, nil
		}
	}
}

// add appends s: do does it for the vector.
func (m *model) add(s []elem, do func([]elem) error) {
	if m.refused(func() error { return do(s) }) {
		return
	}
	m.want = append(m.want, s...)
	m.follow()
}

func (m *model) insert(i int, s []elem, own func() []elem) {
	from := s
	if own != nil {
		from = own()
	}
	if m.refused(func() error { return m.v.Insert(i, from) }) {
		return
	}
	m.want = slices.Insert(slices.Clone(m.want), i, s...)
	m.rebuild()
}

func (m *model) truncate(n int) {
	m.c.Truncate(n)
	m.want, m.held = m.want[:n], m.held[:n]
}

// rebuild makes c what want is.
func (m *model) rebuild() {
	m.c.Truncate(0)
	m.held = nil
	m.follow()
}

// follow appends to c what want has more. If memory runs out, all is cut to what c has.
func (m *model) follow() {
	for _, e := range m.want[m.c.Len():] {
		before := m.c.Cap()
		p, err := m.c.Append(e)
		if m.c.Cap() != before && m.c.Len() <= before {
			m.t.Fatalf("Append takes a block for element %d of %d", m.c.Len(), before)
		}
		if err != nil {
			m.mustBeMemory(err)
			n := m.c.Len()
			m.v.Truncate(n)
			m.want = m.want[:n]
			return
		}
		m.held = append(m.held, p)
	}
}

// refused reports whether a call of the vector runs out of memory. The capacity is as before then.
func (m *model) refused(call func() error) bool {
	before := m.v.Cap()
	err := call()
	m.mustBeMemory(err)
	if err != nil && m.v.Cap() != before {
		m.t.Fatalf("capacity %d after an error, and %d before", m.v.Cap(), before)
	}
	return err != nil
}

func (m *model) mustBeMemory(err error) {
	m.t.Helper()
	if err != nil && !errors.Is(err, freehold.ErrOutOfMemory) {
		m.t.Fatal(err)
	}
}

func (m *model) verify() {
	m.t.Helper()
	if fault := m.c.check(); fault != "" {
		m.t.Fatal(fault)
	}
	if s := m.v.Slice(); !slices.Equal(s, m.want) || cap(s) != len(s) || m.v.Len() != len(m.want) {
		m.t.Fatalf("the vector has %v, want %v", m.v.Slice(), m.want)
	}
	if m.c.Len() != len(m.want) || len(m.held) != len(m.want) {
		m.t.Fatalf("%d elements, want %d", m.c.Len(), len(m.want))
	}
	for i, e := range m.v.All() {
		if e != m.want[i] || m.v.At(i) != e {
			m.t.Fatalf("element %d is %v, want %v", i, e, m.want[i])
		}
	}
	k := 0
	for i, p := range m.c.All() {
		if i != k || *p != m.want[i] || p != m.held[i] || m.c.At(i) != p {
			m.t.Fatalf("element %d is %v at %p, want %v at %p", i, *p, p, m.want[i], m.held[i])
		}
		k++
	}
	if k != len(m.want) {
		m.t.Fatalf("All has %d elements of %d", k, len(m.want))
	}
	for _, st := range []Stats{m.v.Stats(), m.c.Stats()} {
		if st.Len != len(m.want) || st.Cap < st.Len || st.Reserved < int(unsafe.Sizeof(elem{}))*st.Cap {
			m.t.Fatalf("%+v", st)
		}
	}
}

func (m *model) close() {
	m.v.Close()
	m.c.Close()
}

// FuzzVector reads its input as a program for a model. The first two bytes say when memory
// runs out for the Vector and for the Chunked.
func FuzzVector(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 4, 30, 0, 8, 3, 5, 9, 2, 2, 12, 90, 0, 13, 0, 0})
	r := rand.New(rand.NewPCG(2, 1))
	for range 8 {
		prog := make([]byte, 900)
		for i := range prog {
			prog[i] = byte(r.Uint32())
		}
		f.Add(prog)
	}
	f.Fuzz(func(t *testing.T, prog []byte) {
		if len(prog) < 2 || len(prog) > 3000 {
			return
		}
		m := newModel(t, failing(t, prog[0]), failing(t, prog[1]))
		defer m.close()
		m.run(prog[2:])
	})
}

// failing returns an allocator that runs out of memory after n allocations, for good or, if n
// is odd, once; or never.
func failing(t testing.TB, n byte) freehold.Allocator {
	if n == 0 {
		return alloctest.New(t)
	}
	if n%2 == 1 {
		return alloctest.FailOnce(alloctest.New(t), int(n/2))
	}
	return alloctest.FailAfter(alloctest.New(t), int(n/2))
}

// Random programs, on those of a heap and on blocks that move, of which each is refused in
// turn; with and without poison.
func TestRandomPrograms(t *testing.T) {
	rounds := 100
	if testing.Short() {
		rounds = 20
	}
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		prog := make([]byte, 3*r.IntN(600))
		for i := range prog {
			prog[i] = byte(r.Uint32())
		}
		restore := poison.Set(seed%4 > 1)
		var m *model
		if seed%2 == 0 {
			m = newModel(t, heap, heap)
		} else {
			m = newModel(t, failing(t, byte(seed/2)), failing(t, byte(seed/2)))
		}
		m.run(prog)
		m.close()
		restore()
	}
	if n := heap.Stats().Live; n != 0 {
		t.Errorf("%d blocks are left", n)
	}
}
