package subject

import (
	"fmt"
	"reflect"
	"runtime"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/pool"
)

// A List is a linked list, empty at first. Its functions are called once each, in this order.
type List struct {
	Build   func(n int) error // adds n nodes, with the keys from 0 to n-1
	Walk    func() uint64     // the sum of all keys
	Free    func()
	End     func() error // closes what the list was in; the error says that nodes are left
	OffHeap func() int64 // bytes in live blocks, by the allocator's own figures, at any time; -1 if it has none
}

// A ListKind is one way to hold the list.
type ListKind struct {
	Name, Title string
	Frees       string // how the list is freed there
	Open        func() (*List, error)
}

// Lists are all of them. One that has an allocator's name is in that allocator's memory.
var Lists = []ListKind{
	{"go", "Go heap", "the list is dropped and collected, all at once", openGoList},
	{"freehold", "freehold", "node by node", func() (*List, error) {
		h := freehold.NewHeap(nil)
		return offList(
			func() (*offNode, error) { return freehold.New[offNode](h) }, func(p *offNode) { freehold.Free(h, p) },
			func() int64 { return int64(h.Stats().LiveBytes) }, func() error { return closeHeap(h) }), nil
	}},
	{"arena", "arena", "the arena is closed, all at once", func() (*List, error) {
		h := freehold.NewHeap(nil)
		a := arena.New(h, nil)
		l := offList(
			func() (*offNode, error) { return freehold.New[offNode](a) }, nil,
			func() int64 { return int64(h.Stats().LiveBytes) }, func() error { return closeHeap(h) })
		l.Free = a.Close
		return l, nil
	}},
	{"pool", "pool", "node by node", func() (*List, error) {
		h := freehold.NewHeap(nil)
		p := pool.New[offNode](h, nil)
		return offList(p.Get, p.Put, func() int64 { return int64(p.Stats().LiveBytes) }, func() error {
			live := p.Live()
			p.Close()
			if err := allFreed("the pool", live); err != nil {
				return err
			}
			return closeHeap(h)
		}), nil
	}},
	cList("libc"), cList("jemalloc"),
}

// cList is the malloc of that name through cgo, where it is this process's.
func cList(name string) ListKind {
	return ListKind{name, name, "node by node, through cgo; what they count as off-heap is for all of C, with what threads' caches keep", func() (*List, error) {
		h, err := newC(name)
		if err != nil {
			return nil, err
		}
		return offList(
			func() (*offNode, error) { return freehold.New[offNode](h) }, func(p *offNode) { freehold.Free(h, p) },
			func() int64 { return int64(h.Stats().Allocated) }, func() error { return allFreed(name, h.Live()) }), nil
	}}
}

// ListNamed returns the kind of list called name.
func ListNamed(name string) (ListKind, error) {
	for _, k := range Lists {
		if k.Name == name {
			return k, nil
		}
	}
	return ListKind{}, fmt.Errorf("no list is called %q", name)
}

// A goNode holds what an offNode holds, but for the kind of link.
type goNode struct {
	key     uint64
	payload [40]byte
	next    *goNode
}

type offNode struct {
	key     uint64
	payload [40]byte
	next    freehold.Ptr[offNode]
}

// NodeBytes is the size of a node.
var NodeBytes = int64(reflect.TypeFor[goNode]().Size())

func openGoList() (*List, error) {
	var head *goNode
	return &List{
		Build: func(n int) error {
			for i := range n {
				head = &goNode{key: uint64(i), next: head}
			}
			return nil
		},
		Walk: func() (sum uint64) {
			for p := head; p != nil; p = p.next {
				sum += p.key
			}
			return sum
		},
		Free: func() {
			head = nil
			runtime.GC() // the only way to take the list back
		},
		End:     func() error { return nil },
		OffHeap: func() int64 { return -1 },
	}, nil
}

// offList is a list whose nodes come from get, zeroed, and go back by put.
func offList(get func() (*offNode, error), put func(*offNode), bytes func() int64, end func() error) *List {
	var head freehold.Ptr[offNode]
	return &List{
		Build: func(n int) error {
			for i := range n {
				p, err := get()
				if err != nil {
					return err
				}
				p.key, p.next = uint64(i), head
				head = freehold.PtrTo(p)
			}
			return nil
		},
		Walk: func() (sum uint64) {
			for p := head.Get(); p != nil; p = p.next.Get() {
				sum += p.key
			}
			return sum
		},
		Free: func() {
			for p := head.Get(); p != nil; {
				next := p.next.Get()
				put(p)
				p = next
			}
		},
		End: end, OffHeap: bytes,
	}
}

// closeHeap closes h, in which nothing should be left.
func closeHeap(h *freehold.Heap) error {
	left := h.Stats().Live
	h.Close()
	return allFreed("freehold", int(left))
}

// allFreed returns an error if an allocator counts live nodes after the last one
// was freed.
func allFreed(allocator string, live int) error {
	if live != 0 {
		return fmt.Errorf("every node is freed, yet %s counts %d", allocator, live)
	}
	return nil
}
