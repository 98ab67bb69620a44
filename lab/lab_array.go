package main

import (
	"fmt"

	"github.com/freehold-go/freehold"
)

var arrayShape = shape{
	name:  "array",
	title: "array of pointers",
	stores: []store{
		{"go", "[]*uint64, a value for each pointer", 16, func(n int) (dataset, error) {
			return &pointerArray{make([]*uint64, n)}, nil
		}},
		{"flat", "[]uint64, on the Go heap", 8, func(n int) (dataset, error) {
			return &flatArray{make([]uint64, n)}, nil
		}},
		{"freehold", "[]uint64, from freehold.MakeSlice", 8, func(n int) (dataset, error) {
			h := freehold.NewHeap(&freehold.HeapOptions{Name: "gclab"})
			values, err := freehold.MakeSlice[uint64](h, n)
			if err != nil {
				h.Close()
				return nil, err
			}
			return &offArray{flatArray{values}, h}, nil
		}},
	},
}

// pointerArray is an array of pointers, on the Go heap.
type pointerArray struct{ values []*uint64 }

func (a *pointerArray) add(from, to int) error {
	for i := from; i < to; i++ {
		v := valueOf(uint64(i))
		a.values[i] = &v
	}
	return nil
}

func (a *pointerArray) check(stride int) error {
	for i := 0; i < len(a.values); i += stride {
		if err := checkEntry(i, *a.values[i]); err != nil {
			return err
		}
	}
	return nil
}

func (a *pointerArray) offHeap() int64 { return 0 }
func (a *pointerArray) close()         {}

// flatArray is an array of values.
type flatArray struct{ values []uint64 }

func (a *flatArray) add(from, to int) error {
	for i := from; i < to; i++ {
		a.values[i] = valueOf(uint64(i))
	}
	return nil
}

func (a *flatArray) check(stride int) error {
	for i := 0; i < len(a.values); i += stride {
		if err := checkEntry(i, a.values[i]); err != nil {
			return err
		}
	}
	return nil
}

func (a *flatArray) offHeap() int64 { return 0 }
func (a *flatArray) close()         {}

// offArray is an array of values, off-heap.
type offArray struct {
	flatArray
	heap *freehold.Heap
}

func (a *offArray) offHeap() int64 { return int64(a.heap.Stats().Committed) }
func (a *offArray) close() {
	freehold.FreeSlice(a.heap, a.values)
	a.heap.Close()
}

// checkEntry verifies the value of entry i.
func checkEntry(i int, got uint64) error {
	if want := valueOf(uint64(i)); got != want {
		return fmt.Errorf("entry %d holds %#x, where %#x was written", i, got, want)
	}
	return nil
}
