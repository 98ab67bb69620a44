// Command words prints what freehold says of types with Go pointers.
package main

import (
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/pool"
)

type (
	node               struct{ next *node }
	pair[A any, B any] struct {
		a A
		b []B
	}
	deep struct {
		in [2]struct{ list []pair[int, node] }
	}
	texts []string
	kind  string
)

var calls = []func(freehold.Allocator){
	func(a freehold.Allocator) { freehold.New[node](a) },
	func(a freehold.Allocator) { freehold.New[deep](a) },
	func(a freehold.Allocator) { freehold.New[pair[int, byte]](a) },
	func(a freehold.Allocator) { freehold.New[pair[node, string]](a) },
	func(a freehold.Allocator) { freehold.New[[3]pair[rune, node]](a) },
	func(a freehold.Allocator) { freehold.MakeSlice[time.Time](a, 1) },
	func(a freehold.Allocator) { freehold.MakeSlice[[2]string](a, 1) },
	func(a freehold.Allocator) { freehold.MakeSlice[texts](a, 1) },
	func(a freehold.Allocator) { freehold.MakeSlice[kind](a, 1) },
	func(a freehold.Allocator) { freehold.MakeSlice[map[kind][]byte](a, 1) },
	func(a freehold.Allocator) { freehold.MakeSlice[*map[kind]any](a, 1) },
	func(a freehold.Allocator) { freehold.MakeSlice[[]*[]rune](a, 1) },
	func(a freehold.Allocator) { freehold.New[unsafe.Pointer](a) },
	func(a freehold.Allocator) { freehold.New[func(int) error](a) },
	func(a freehold.Allocator) { freehold.New[chan int](a) },
	func(a freehold.Allocator) { freehold.New[error](a) },
	func(a freehold.Allocator) { freehold.New[atomic.Pointer[node]](a) },
	func(a freehold.Allocator) { freehold.New[atomic.Value](a) },
	func(a freehold.Allocator) { freehold.Append(a, nil, any(1)) },
	func(a freehold.Allocator) { freehold.Grow[uintptr](a, nil, 1); freehold.Grow[[]uintptr](a, nil, 1) },
	func(a freehold.Allocator) { pool.New[pair[string, int]](a, nil) },
}

func main() {
	for _, call := range calls {
		func() {
			defer func() { fmt.Println(recover()) }()
			call(freehold.Default())
		}()
	}
}
