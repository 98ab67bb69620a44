package escape

import (
	"strings"
	"sync"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/buffer"
	"github.com/freehold-go/freehold/hashmap"
)

type result struct {
	name string
	rows []int
}

type server struct {
	heap *freehold.Heap
	last []byte
	byID map[int]string
}

var current string

func returned(h *freehold.Heap, in string) (string, error) {
	scratch := arena.New(h, nil)
	defer scratch.Close()
	name, err := freehold.CloneString(scratch, in)
	return name, err // want `off-heap memory is returned and outlives its block, which the deferred scratch.Close at line 28 ends`
}

func returnedCopy(h *freehold.Heap, in string) (string, error) {
	scratch := arena.New(h, nil)
	defer scratch.Close()
	name, err := freehold.CloneString(scratch, in)
	return strings.Clone(name), err
}

func returnedOfAnother(h *freehold.Heap, in string) (string, error) {
	scratch := arena.New(h, nil)
	defer scratch.Close()
	freehold.CloneString(scratch, in)
	return freehold.CloneString(h, in)
}

func returnedPart(h *freehold.Heap) []int {
	xs := freehold.Must(freehold.MakeSlice[int](h, 9))
	defer freehold.FreeSlice(h, xs)
	if xs[0] > 0 {
		return nil
	}
	return xs[1:] // want `off-heap memory is returned`
}

func returnedElement(h *freehold.Heap) int {
	xs := freehold.Must(freehold.MakeSlice[int](h, 9))
	defer freehold.FreeSlice(h, xs)
	return xs[1]
}

func returnedInStruct(h *freehold.Heap) *result {
	xs := freehold.Must(freehold.MakeSlice[int](h, 9))
	defer freehold.FreeSlice(h, xs)
	return &result{rows: xs} // want `off-heap memory is returned`
}

func returnedBytes(h *freehold.Heap) []byte {
	buf := buffer.New(h, nil)
	defer buf.Close()
	buf.WriteString("text")
	return buf.Bytes() // want `off-heap memory is returned and outlives its block, which the deferred buf.Close`
}

func freedOnError(h *freehold.Heap, fill func([]byte) error) ([]byte, error) {
	b, err := h.Alloc(8, 8)
	if err != nil {
		return nil, err
	}
	if err := fill(b); err != nil {
		h.Free(b)
		return nil, err
	}
	return b, nil
}

func global(h *freehold.Heap) {
	s := freehold.Must(freehold.CloneString(h, "text"))
	current = s // want `off-heap memory is stored and outlives its block, which freehold.FreeString at line`
	freehold.FreeString(h, s)
}

func globalForAWhile(h *freehold.Heap) {
	s := freehold.Must(freehold.CloneString(h, "text"))
	current = s
	work()
	current = ""
	freehold.FreeString(h, s)
}

func (s *server) field() {
	b := freehold.Must(s.heap.Alloc(8, 8))
	defer s.heap.Free(b)
	s.last = b // want `off-heap memory is stored and outlives its block, which the deferred s.heap.Free`
}

func (s *server) fieldReset() {
	b := freehold.Must(s.heap.Alloc(8, 8))
	defer s.heap.Free(b)
	s.last = b
	s.reset()
}

func (s *server) reset() { s.last = nil }

func (s *server) entry(id int) {
	name := freehold.Must(freehold.CloneString(s.heap, "name"))
	s.byID[id] = name // want `off-heap memory is stored`
	freehold.FreeString(s.heap, name)
}

func (s *server) entryDeleted(id int) {
	name := freehold.Must(freehold.CloneString(s.heap, "name"))
	s.byID[id] = name
	work()
	delete(s.byID, id)
	freehold.FreeString(s.heap, name)
}

func ownMap(h *freehold.Heap) int {
	seen := map[string]bool{}
	s := freehold.Must(freehold.CloneString(h, "name"))
	seen[s] = true
	n := len(seen)
	freehold.FreeString(h, s)
	return n
}

func local(h *freehold.Heap) int {
	xs := freehold.Must(freehold.MakeSlice[int](h, 9))
	r := result{rows: xs}
	n := r.rows[0]
	freehold.FreeSlice(h, xs)
	return n
}

func sent(h *freehold.Heap, c chan []byte) {
	b := freehold.Must(h.Alloc(8, 8))
	c <- b // want `off-heap memory is sent and outlives its block`
	h.Free(b)
}

func sentAndDone(h *freehold.Heap, c chan []byte, done chan bool, group *sync.WaitGroup) {
	b := freehold.Must(h.Alloc(8, 8))
	c <- b
	<-done
	h.Free(b)
	b = freehold.Must(h.Alloc(8, 8))
	c <- b
	group.Wait()
	h.Free(b)
}

// Off-heap memory in off-heap memory of one lifetime.
func inside(h *freehold.Heap) {
	type node struct{ name freehold.String }
	a := arena.New(h, nil)
	defer a.Close()
	n := freehold.Must(freehold.New[node](a))
	n.name = freehold.StringOf(freehold.Must(freehold.CloneString(a, "x")))
}

func work() {}

func textOfMap(h *freehold.Heap) string {
	m := hashmap.New[int, string](h, nil)
	defer m.Close()
	s, _ := m.Get(1)
	return s // want `outlives its block`
}

func countOfMap(h *freehold.Heap) int {
	m := hashmap.New[int, int](h, nil)
	defer m.Close()
	n, _ := m.Get(1)
	return n
}

// What a call has returned may be the function's own: nobody is certain to have it after
// the error.
func fresh[T any]() *T { return new(T) }

func (s *server) fillNew(fill func([]byte) error) (*server, error) {
	made := fresh[server]()
	lists := make([][]byte, len(s.byID))
	names := func() map[int]string { return map[int]string{} }()
	queue := make(chan []byte, 1)
	b := freehold.Must(s.heap.Alloc(8, 8))
	name := freehold.Must(freehold.CloneString(s.heap, "name"))
	made.last = b
	lists[0] = b
	names[1] = name
	queue <- b
	s.byID[1] = name // want `off-heap memory is stored`
	if err := fill(b); err != nil {
		s.heap.Free(b)
		freehold.FreeString(s.heap, name)
		return nil, err
	}
	return made, nil
}

func try[T any](err *error, get func() (T, error)) (v T) {
	if *err == nil {
		v, *err = get()
	}
	return v
}

func fillTried(h *freehold.Heap) (*server, error) {
	var err error
	s := try(&err, func() (*server, error) { return &server{}, nil })
	b := try(&err, func() ([]byte, error) { return h.Alloc(8, 8) })
	s.last = b
	if err != nil {
		h.Free(b)
		return nil, err
	}
	return s, nil
}

// What is stored in memory that is freed too outlives nothing.
type link struct{ next *link }

func linkAndFree(h *freehold.Heap, last *link, fill func() error) error {
	n := freehold.Must(freehold.New[link](h))
	last.next = n
	if err := fill(); err != nil {
		freehold.Free(h, n)
		freehold.Free(h, last)
		return err
	}
	return nil
}

func (s *server) taken(names *hashmap.Map[int, string], words *hashmap.Map[string, []byte], id int) string {
	name, _ := names.Get(id)
	s.byID[id] = name // want `off-heap memory is stored and outlives its block, which names.Delete`
	names.Delete(id)
	last, _ := words.Get("x")
	s.last = last // want `off-heap memory is stored and outlives its block, which words.Clear`
	words.Clear()
	next := id + 1
	other, _ := names.Get(next)
	defer names.Delete(next)
	return other // want `off-heap memory is returned and outlives its block, which the deferred names.Delete`
}

func (s *server) notTaken(names *hashmap.Map[int, string], id int) string {
	name, _ := names.Get(id)
	s.byID[id] = name
	names.Delete(id + 1)
	return name
}
