// Closed: the behaviour of a closed allocator's calls, the same for all allocators.

package freehold_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/pool"
)

// closable is an allocator with all that the tests of this file call.
type closable interface {
	freehold.Owner
	GoodSize(size int) int
	Close()
}

// sized gives an arena a GoodSize.
type sized struct {
	freehold.Owner
	close func()
}

func (s sized) GoodSize(size int) int { return freehold.GoodSize(s.Owner, size) }
func (s sized) Close()                { s.close() }

func TestClosedAllocatorsPanicOnlyForBlocks(t *testing.T) {
	h := freehold.NewHeap(&freehold.HeapOptions{Name: "closing"})
	defer h.Close()
	own := freehold.NewHeap(&freehold.HeapOptions{Name: "own"})
	a, s := arena.New(h, nil), arena.NewShared(h, nil)
	b := pool.NewBlocks(h, 64, 8, nil)
	for call, tt := range map[string]struct {
		closable
		who     string
		changes map[string]func() // other calls that panic
		reports []func()          // other calls that do not
	}{
		"Heap": {own, `heap "own" is closed`,
			map[string]func(){"Trim": own.Trim},
			[]func(){func() { own.Stats() }, func() { own.Live() }, func() { own.FreePointer(nil) }, func() { own.UsableSize(nil) }, func() { fmt.Fprint(io.Discard, own) }}},
		"arena.Arena": {sized{a, a.Close}, "the arena is closed",
			map[string]func(){"Trim": a.Trim, "Reset": a.Reset, "TrimTo": func() { a.TrimTo(0) }, "Mark": func() { a.Mark() }, "Reserve": func() { a.Reserve(0) }},
			[]func(){func() { a.Stats() }, func() { a.Live() }, func() { a.Remaining() }}},
		"arena.Shared": {sized{s, s.Close}, "the arena is closed",
			map[string]func(){"Trim": s.Trim, "Reset": s.Reset, "Reserve": func() { s.Reserve(0) }},
			[]func(){func() { s.Stats() }, func() { s.Live() }, func() { s.Enter().Leave() }}},
		"pool.Blocks": {b, "the pool of 64-byte blocks is closed",
			map[string]func(){"Trim": b.Trim, "Reset": b.Reset, "GetBatch": func() { b.GetBatch(nil) }},
			[]func(){func() { b.Stats() }, func() { b.Live() }, func() { b.Retire(nil) }, func() { b.PutBatch(nil) }, func() { b.Enter().Leave() }}},
	} {
		block := freehold.Must(tt.Alloc(64, 8))
		tt.Close()
		for name, f := range map[string]func(){
			"Alloc":  func() { tt.Alloc(64, 8) },
			"Free":   func() { tt.Free(block) },
			"Resize": func() { tt.Resize(block, 32) },
		} {
			wantPanic(t, "freehold: "+call+"."+name+": "+tt.who, f)
		}
		wantPanic(t, "freehold: "+call+"...: "+tt.who, func() { tt.Zeroed(64, 8) })
		wantPanic(t, "freehold: "+call+".Alloc: "+tt.who, func() { tt.Alloc(0, 1) })
		wantPanic(t, "freehold: "+call+".Zeroed: "+tt.who, func() { tt.Zeroed(0, 1) })
		wantPanic(t, "freehold: "+call+".Alloc: "+tt.who, func() { tt.Alloc(100_000, 8) })
		for name, f := range tt.changes {
			wantPanic(t, "freehold: "+call+"."+name+": "+tt.who, f)
		}

		tt.Close()
		tt.Free(nil)
		if r, ok := tt.Resize(nil, 0); r == nil || len(r) > 0 || !ok {
			t.Errorf("%s: Resize of nil to 0: %v, %t", call, r, ok)
		}
		if _, ok := tt.Resize(nil, 8); ok {
			t.Errorf("%s: Resize of nil to 8 bytes succeeds", call)
		}
		if call != "Cache" && tt.Owns(block) {
			t.Errorf("%s owns a block", call)
		}
		if n := tt.GoodSize(64); n != 64 {
			t.Errorf("%s: GoodSize of 64 is %d", call, n)
		}
		for _, f := range tt.reports {
			f()
		}
	}
}
