// Engine: how package track reaches the heap inside a Heap.

package freehold

import "github.com/freehold-go/freehold/internal/heap"

func init() { heap.Of = func(h any) *heap.Heap { return &h.(*Heap).h } }
