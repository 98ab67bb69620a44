// Engine: the heap as package watch sees it.

package heap

import "github.com/freehold-go/freehold/internal/small"

// engine implements watch.Engine.
type engine Heap

func (e *engine) Alloc(size, align int, zero bool) ([]byte, error) {
	return (*Heap)(e).allocUnwatched(&request{size: size, align: align, zero: zero})
}

func (e *engine) Free(b []byte) { (*Heap)(e).Free(b) }

func (e *engine) Resize(call string, b []byte, size int) ([]byte, bool) {
	return (*Heap)(e).resizeBlock(call, b, size)
}

func (e *engine) GoodSize(size int) (bytes int, isSmall bool) {
	return (*Heap)(e).goodSize(size), size <= small.MaxSize
}

func (e *engine) Misused(call string, b []byte) { (*Heap)(e).misused(call, b) }

func (e *engine) Mark(b []byte)   { mark(b, true) }
func (e *engine) Unmark(b []byte) { mark(b, false) }
