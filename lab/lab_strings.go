package main

import (
	"fmt"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/intern"
)

var stringsShape = shape{
	name:  "strings",
	title: "numbered strings",
	stores: []store{
		{"go", "map[string]uint32 and []string, strings of 16 bytes", 80, func(n int) (dataset, error) {
			return &goStrings{make(map[string]uint32, n), make([]string, 0, n)}, nil
		}},
		{"freehold", "intern.Strings", 48, func(int) (dataset, error) {
			h := freehold.NewHeap(&freehold.HeapOptions{Name: "gclab"})
			return &offStrings{h, intern.New(h, nil)}, nil
		}},
	},
}

// goStrings number strings by a map, on the Go heap.
type goStrings struct {
	numbers map[string]uint32
	all     []string
}

func (g *goStrings) add(from, to int) error {
	for i := from; i < to; i++ {
		key := keyOf(i)
		s := string(key[:])
		g.numbers[s] = uint32(i)
		g.all = append(g.all, s)
	}
	return nil
}

func (g *goStrings) check(stride int) error {
	return checkNumbers(len(g.all), stride, func(i int, s string) (string, uint32, bool) {
		number, ok := g.numbers[s]
		return g.all[i], number, ok
	})
}

func (g *goStrings) offHeap() int64 { return 0 }
func (g *goStrings) close()         {}

// offStrings are interned, off-heap.
type offStrings struct {
	heap *freehold.Heap
	all  *intern.Strings
}

func (o *offStrings) add(from, to int) error {
	for i := from; i < to; i++ {
		key := keyOf(i)
		if _, err := o.all.InternBytes(key[:]); err != nil {
			return err
		}
	}
	return nil
}

func (o *offStrings) check(stride int) error {
	return checkNumbers(o.all.Len(), stride, func(i int, s string) (string, uint32, bool) {
		id, ok := o.all.Lookup(s)
		return o.all.Value(intern.ID(i)), uint32(id), ok
	})
}

func (o *offStrings) offHeap() int64 { return int64(o.heap.Stats().Committed) }
func (o *offStrings) close() {
	o.all.Close()
	o.heap.Close()
}

// checkNumbers verifies every stride-th of n strings. get returns the string of a
// number, and the number of a string if it has one.
func checkNumbers(n, stride int, get func(i int, s string) (string, uint32, bool)) error {
	for i := 0; i < n; i += stride {
		key := keyOf(i)
		want := string(key[:])
		if s, number, ok := get(i, want); s != want || !ok || number != uint32(i) {
			return fmt.Errorf("string %d is %q, and %q has the number %d (%v)", i, s, want, number, ok)
		}
	}
	return nil
}
