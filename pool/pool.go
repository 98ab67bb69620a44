// Pool: values of one type.
//
// The typed face of Blocks. The casts are sound because T holds no Go pointers
// and a block has T's size and alignment.

package pool

import (
	"reflect"
	"strings"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
)

// Pool hands out values of type T, in blocks that are side by side; see
// [Blocks], which it is with types and with generations: twelve more bytes of
// bookkeeping a value. It is safe for concurrent use and must not be copied.
//
// It comes from [New]. Get, Retire, NewCache, Stats, Live, Reset, Trim and Close of
// the zero value panic and name New. Enter works. All else is undefined, for a
// check would slow Put and Lookup down.
type Pool[T any] struct{ blocks Blocks }

// New returns a pool of values of type T, with memory from parent, which must
// outlive it. It takes no memory before the first value. Close gives it back.
//
// It panics if parent is nil, if T holds a Go pointer, as [freehold.New] does, or is larger than
// 16 MiB.
func New[T any](parent freehold.Allocator, o *Options) *Pool[T] {
	if err := freehold.PointerFree[T](); err != nil {
		name, fault, _ := strings.Cut(strings.TrimPrefix(err.Error(), "freehold: "), ": ")
		arg.Panicf("pool.New["+name+"]", "%s", fault)
	}
	var t T
	p := &Pool[T]{}
	p.blocks.init("pool.New", parent, max(int(unsafe.Sizeof(t)), 1), int(unsafe.Alignof(t)), o, reflect.TypeFor[T]())
	return p
}

// Get returns a zero T, the caller's until Put or Retire. The error matches
// [freehold.ErrOutOfMemory]: the limit was reached, or the parent's.
func (p *Pool[T]) Get() (*T, error) {
	q, err := fast.get(&p.blocks)
	return (*T)(q), err
}

// Put takes back a value that Get returned, from any goroutine. Nothing may use
// it afterwards. Nil is accepted. It panics if t is no live value of the pool.
func (p *Pool[T]) Put(t *T) {
	if t != nil {
		fast.put(&p.blocks, unsafe.Pointer(t))
	}
}

// Retire is Put as soon as every [Guard] that was entered before the call has
// left. The value must be out of new readers' reach before the call. Handles to
// it say that it is gone at once. A Put of it or a second Retire is a mistake
// that is detected.
func (p *Pool[T]) Retire(t *T) {
	if t != nil {
		p.blocks.retire("pool.Pool.Retire", unsafe.Pointer(t))
	}
}

// Enter begins a reader's stay; see [Guard]. With Leave it costs two atomic
// operations.
func (p *Pool[T]) Enter() Guard { return p.blocks.Enter() }

// NewCache returns an empty cache; see [Cache]. Its Close gives its values back;
// one that is dropped without Close keeps them until the pool's Reset or Close.
func (p *Pool[T]) NewCache() *Cache[T] {
	c := &Cache[T]{}
	c.cache.open("pool.Pool.NewCache", &p.blocks)
	return c
}

// Owns reports whether t points into the pool's memory.
func (p *Pool[T]) Owns(t *T) bool {
	return t != nil && p.blocks.chunkOf(uintptr(unsafe.Pointer(t))) != nil
}

// Stats is [Blocks.Stats].
func (p *Pool[T]) Stats() Stats { return p.blocks.stats("pool.Pool.Stats") }

// Live is [Blocks.Live].
func (p *Pool[T]) Live() int {
	live, _ := p.blocks.count("pool.Pool.Live")
	return live
}

// Reset is [Blocks.Reset].
func (p *Pool[T]) Reset() { p.blocks.reset("pool.Pool.Reset") }

// Trim is [Blocks.Trim].
func (p *Pool[T]) Trim() { p.blocks.trim("pool.Pool.Trim") }

// Close is [Blocks.Close].
func (p *Pool[T]) Close() { p.blocks.close("pool.Pool.Close") }
