// Copies: in debug modes, a function of the caller gets a copy of the value that it looks at. The
// block of the copy is freed when the function returns.
//
//	value in a segment --copy--> block --f--> compare --Free--> quarantine of the allocator
//
// The allocator's debug checks find later uses of the block, as of any freed block. The comparison
// finds a write during the call. Without a debug mode the function gets the cache's memory.

package cache

import (
	"bytes"
	"math/rand/v2"
	"sync"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/heap"
	"github.com/freehold-go/freehold/internal/poison"
	"github.com/freehold-go/freehold/internal/watch"
)

// A copier makes the copies of a cache.
type copier struct {
	memory  freehold.Allocator
	guarded *watch.Heap // guards copies, or nil
	oneIn   int         // one in oneIn values is copied
}

// copyHeap has the copies of all caches whose parents do not find uses after Free themselves.
var copyHeap = sync.OnceValue(func() *freehold.Heap {
	return freehold.NewHeap(&freehold.HeapOptions{Name: "cache, lent values"})
})

// newCopier returns nil if no mode asks for copies.
func newCopier(parent freehold.Allocator) *copier {
	switch n := watch.GuardRate(); {
	case poison.Checks(parent):
		return &copier{memory: parent, oneIn: 1}
	case poison.On():
		return &copier{memory: copyHeap(), oneIn: 1}
	case n > 0:
		return &copier{memory: copyHeap(), guarded: heap.Of(copyHeap()).Watch(), oneIn: n}
	}
	return nil
}

// copy returns a block with a copy of b. It returns nil if b is empty, was not sampled, or got no
// memory.
func (cp *copier) copy(b []byte) (block []byte) {
	if len(b) == 0 || cp.oneIn > 1 && rand.IntN(cp.oneIn) > 0 {
		return nil
	}
	if cp.guarded != nil {
		block = cp.guarded.Guarded(len(b))
	}
	if block == nil && cp.oneIn == 1 {
		block, _ = cp.memory.Alloc(len(b), 1)
	}
	copy(block, b)
	return block
}

func (cp *copier) free(block []byte) {
	if block != nil {
		cp.memory.Free(block)
	}
}

// withCopy calls f with the cache's memory b, or with a copy. f must not write to it.
func (cp *copier) withCopy(call string, b []byte, f func(b []byte)) {
	block := cp.copy(b)
	if block == nil {
		f(b)
		return
	}
	defer cp.free(block)
	f(block)
	mustBeEqual(call, block, b)
}

// mustBeEqual panics if a function wrote to the copy that it was given.
func mustBeEqual(call string, given, b []byte) {
	if bytes.Equal(given, b) {
		return
	}
	i := 0
	for given[i] == b[i] {
		i++
	}
	arg.Panicf(call, "the function has written to byte %d of %d, which is the cache's memory", i, len(b))
}

// show calls f with e, whose value is the cache's memory or a copy of it.
func (cp *copier) show(call string, e Entry, f func(e Entry)) {
	cp.withCopy(call, e.Value, func(value []byte) {
		e.Value = value
		f(e)
	})
}

// change calls Update's f with e.
func (cp *copier) change(e *Entry, found bool, f func(e *Entry, found bool) Change) (change Change) {
	if cp == nil {
		return f(e, found)
	}
	value := e.Value
	cp.withCopy("cache.Cache.Update", value, func(given []byte) {
		e.Value = given
		change = f(e, found)
		// If f leaves a part of the copy in Value, that part of the cache's memory replaces it.
		if from := addrOf(e.Value) - addrOf(given); len(e.Value) > 0 && from < uintptr(len(given)) {
			e.Value = value[from:][:len(e.Value)]
		}
	})
	return change
}

// tell calls f with a key and its entry. call is the name of f.
func (cp *copier) tell(call string, key []byte, e Entry, f func(key []byte, e Entry)) {
	if cp == nil {
		f(key, e)
		return
	}
	cp.withCopy(call, key, func(key []byte) { cp.show(call, e, func(e Entry) { f(key, e) }) })
}

// yield calls the loop body f of All with copies. The body may write to them.
func (cp *copier) yield(room *[]byte, key []byte, e Entry, f func([]byte, Entry) bool) bool {
	if cp == nil {
		*room = append(append((*room)[:0], key...), e.Value...)
		e.Value = (*room)[len(key):]
		return f((*room)[:len(key):len(key)], e)
	}
	k, v := cp.copy(key), cp.copy(e.Value)
	defer cp.free(k)
	defer cp.free(v)
	if k != nil {
		key = k
	} else {
		key = bytes.Clone(key)
	}
	if v != nil {
		e.Value = v
	} else {
		e.Value = bytes.Clone(e.Value)
	}
	return f(key, e)
}
