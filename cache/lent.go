// Lent values: in debug modes, a function of the caller gets a copy, in a block that is freed when
// the function returns.
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

// A lender makes the copies of a cache.
type lender struct {
	memory  freehold.Allocator
	guarded *watch.Heap // guards copies, or nil
	oneIn   int         // one in oneIn values is copied
}

// lentHeap has the copies of all caches whose parents do not find uses after Free themselves.
var lentHeap = sync.OnceValue(func() *freehold.Heap {
	return freehold.NewHeap(&freehold.HeapOptions{Name: "cache, lent values"})
})

// newLender returns nil if no mode asks for copies.
func newLender(parent freehold.Allocator) *lender {
	switch n := watch.GuardRate(); {
	case poison.Checks(parent):
		return &lender{memory: parent, oneIn: 1}
	case poison.On():
		return &lender{memory: lentHeap(), oneIn: 1}
	case n > 0:
		return &lender{memory: lentHeap(), guarded: heap.Of(lentHeap()).Watch(), oneIn: n}
	}
	return nil
}

// copy returns a block with a copy of b. It returns nil if b is empty, was not sampled, or got no
// memory.
func (l *lender) copy(b []byte) (block []byte) {
	if len(b) == 0 || l.oneIn > 1 && rand.IntN(l.oneIn) > 0 {
		return nil
	}
	if l.guarded != nil {
		block = l.guarded.Guarded(len(b))
	}
	if block == nil && l.oneIn == 1 {
		block, _ = l.memory.Alloc(len(b), 1)
	}
	copy(block, b)
	return block
}

func (l *lender) free(block []byte) {
	if block != nil {
		l.memory.Free(block)
	}
}

// lend calls f with the cache's memory b, or with a copy. f must not write to it.
func (l *lender) lend(call string, b []byte, f func(b []byte)) {
	block := l.copy(b)
	if block == nil {
		f(b)
		return
	}
	defer l.free(block)
	f(block)
	mustBeEqual(call, block, b)
}

// mustBeEqual panics if a function wrote to the copy that it got.
func mustBeEqual(call string, lent, b []byte) {
	if bytes.Equal(lent, b) {
		return
	}
	i := 0
	for lent[i] == b[i] {
		i++
	}
	arg.Panicf(call, "the function has written to byte %d of %d, which are the cache's", i, len(b))
}

// show calls f with e, whose value is the cache's memory or a copy of it.
func (l *lender) show(call string, e Entry, f func(e Entry)) {
	l.lend(call, e.Value, func(value []byte) {
		e.Value = value
		f(e)
	})
}

// change calls Update's f with e.
func (l *lender) change(e *Entry, found bool, f func(e *Entry, found bool) Change) (change Change) {
	if l == nil {
		return f(e, found)
	}
	value := e.Value
	l.lend("cache.Cache.Update", value, func(lent []byte) {
		e.Value = lent
		change = f(e, found)
		if from := addrOf(e.Value) - addrOf(lent); len(e.Value) > 0 && from < uintptr(len(lent)) {
			e.Value = value[from:][:len(e.Value)]
		}
	})
	return change
}

// tell calls OnEvict, which is f.
func (l *lender) tell(key []byte, e Entry, why Reason, f func(key []byte, e Entry, why Reason)) {
	const call = "cache.Options.OnEvict"
	if l == nil {
		f(key, e, why)
		return
	}
	l.lend(call, key, func(key []byte) { l.show(call, e, func(e Entry) { f(key, e, why) }) })
}

// yield calls the loop body f of All with copies. The body may write to them.
func (l *lender) yield(room *[]byte, key []byte, e Entry, f func([]byte, Entry) bool) bool {
	if l == nil {
		*room = append(append((*room)[:0], key...), e.Value...)
		e.Value = (*room)[len(key):]
		return f((*room)[:len(key):len(key)], e)
	}
	k, v := l.copy(key), l.copy(e.Value)
	defer l.free(k)
	defer l.free(v)
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
