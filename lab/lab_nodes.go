// Nodes: objects linked by pointers, in many lists at once.
//
//	list 0   -> node 2*lists   -> node lists   -> node 0
//	list 1   -> node 2*lists+1 -> node lists+1 -> node 1
//	...
//
// A collector can follow many lists at once, and finds the neighbours in a list far
// apart in memory, as they are in maps and trees that have grown.

package main

import (
	"fmt"

	"github.com/freehold-go/freehold"
)

const nodeLists = 4096

var nodesShape = shape{
	name:  "nodes",
	title: "objects linked by pointers",
	stores: []store{
		{"go", fmt.Sprintf("structs of %d bytes in linked lists, %d at once", nodeBytes, nodeLists), 64, func(int) (dataset, error) {
			return &goNodes{}, nil
		}},
		{"flat", "the same structs in a slice, linked by indices", nodeBytes, func(n int) (dataset, error) {
			return &flatNodes{nodes: make([]flatNode, 0, n)}, nil
		}},
		{"freehold", "the same structs from freehold.New, linked by freehold.Ptr", 64, func(int) (dataset, error) {
			return &offNodes{heap: freehold.NewHeap(&freehold.HeapOptions{Name: "gclab"})}, nil
		}},
	},
}

// goNodes are linked by pointers, on the Go heap.
type goNodes struct {
	n     int
	heads [nodeLists]*goNode
}

func (g *goNodes) add(from, to int) error {
	for i := from; i < to; i++ {
		head := &g.heads[i%nodeLists]
		*head = &goNode{key: uint64(i), next: *head}
	}
	g.n = to
	return nil
}

func (g *goNodes) check(stride int) error {
	return checkLists(g.n, stride, func(list int, key func(uint64) bool) {
		for p := g.heads[list]; p != nil && key(p.key); p = p.next {
		}
	})
}

func (g *goNodes) offHeap() int64 { return 0 }
func (g *goNodes) close()         {}

// A flatNode holds what a goNode holds, but for the kind of link.
type flatNode struct {
	key     uint64
	payload [40]byte
	next    uint64 // index of the next node, plus 1
}

// flatNodes are linked by indices into one slice.
type flatNodes struct {
	nodes []flatNode
	heads [nodeLists]uint64 // as flatNode.next
}

func (f *flatNodes) add(from, to int) error {
	for i := from; i < to; i++ {
		head := &f.heads[i%nodeLists]
		f.nodes = append(f.nodes, flatNode{key: uint64(i), next: *head})
		*head = uint64(len(f.nodes))
	}
	return nil
}

func (f *flatNodes) check(stride int) error {
	return checkLists(len(f.nodes), stride, func(list int, key func(uint64) bool) {
		for at := f.heads[list]; at != 0 && key(f.nodes[at-1].key); at = f.nodes[at-1].next {
		}
	})
}

func (f *flatNodes) offHeap() int64 { return 0 }
func (f *flatNodes) close()         {}

// offNodes are linked by references, off-heap.
type offNodes struct {
	n     int
	heap  *freehold.Heap
	heads [nodeLists]freehold.Ptr[offNode]
}

func (o *offNodes) add(from, to int) error {
	for i := from; i < to; i++ {
		p, err := freehold.New[offNode](o.heap)
		if err != nil {
			return err
		}
		head := &o.heads[i%nodeLists]
		p.key, p.next = uint64(i), *head
		*head = freehold.PtrTo(p)
		o.n = i + 1
	}
	return nil
}

func (o *offNodes) check(stride int) error {
	return checkLists(o.n, stride, func(list int, key func(uint64) bool) {
		for p := o.heads[list].Get(); p != nil && key(p.key); p = p.next.Get() {
		}
	})
}

func (o *offNodes) offHeap() int64 { return int64(o.heap.Stats().Committed) }
func (o *offNodes) close()         { o.heap.Close() }

// checkLists verifies every stride-th list of n nodes. keys passes the keys of a
// list on, from its head, until key returns false.
func checkLists(n, stride int, keys func(list int, key func(uint64) bool)) error {
	for list := 0; list < nodeLists; list += stride {
		want := list - nodeLists // the last number that is list's, as all below n are there
		if n > list {
			want += (n - list + nodeLists - 1) / nodeLists * nodeLists
		}
		var err error
		keys(list, func(got uint64) bool {
			if want < 0 || got != uint64(want) {
				err = fmt.Errorf("list %d has a node with the key %d out of order", list, got)
			}
			want -= nodeLists
			return err == nil
		})
		if err == nil && want >= 0 {
			err = fmt.Errorf("list %d ends before the node with the key %d", list, want)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
