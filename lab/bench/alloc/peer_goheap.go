// Peer: the Go heap. Freeing is leaving it to the collector, which runs with
// its default settings and inside the measured time.

//go:build peer_goheap

package alloc

import (
	"slices"
	"unsafe"
)

const peer = "go"

func alloc(n int) (block, error)  { return make([]byte, n), nil }
func zeroed(n int) (block, error) { return make([]byte, n), nil }
func free(block)                  {}

// realloc is what append does, without room to spare.
func realloc(b block, old, n int) (block, error) { return slices.Grow(b, n-old)[:n:n], nil }

// pair allocates by new, of a size known to the compiler: the Go heap's best case.
func pair(size int) func(n int) uint64 {
	switch size {
	case 16:
		return objects[[16]byte]()
	case 64:
		return objects[[64]byte]()
	case 256:
		return objects[[256]byte]()
	case 1 << 10:
		return objects[[1 << 10]byte]()
	case 4 << 10:
		return objects[[4 << 10]byte]()
	case 64 << 10:
		return objects[[64 << 10]byte]()
	case 1 << 20:
		return objects[[1 << 20]byte]()
	}
	panic("a size that no pair has")
}

// objects keeps each object until the next one comes, as the compiler would put it on the stack.
//
//go:noinline
func objects[T any]() func(n int) uint64 {
	kept := new(struct {
		_ [128]byte // the other goroutine's is on other cache lines
		v *T
		_ [128]byte
	})
	return func(n int) uint64 {
		for range n {
			kept.v = new(T)
			*(*byte)(unsafe.Pointer(kept.v)) = 1
		}
		return uint64(n) * uint64(unsafe.Sizeof(*kept.v))
	}
}
