package pool_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/poison"
	"github.com/freehold-go/freehold/pool"
)

// A batch that the slow path takes serves the next calls at any depth of the goroutine's
// stack: it is in the slot where they look first.
func TestEachBatchIsUsedUp(t *testing.T) {
	defer poison.Set(false)() // a checked pool has no stacks
	const gets, batch = 256, 64
	p := newPool[node](t, &pool.Options{MaxBlocks: 1 << 14})
	count := func(t *testing.T, depth int) {
		exchanges := 0
		for range gets {
			before := p.Blocks().CentralFree()
			freehold.Must(p.Get())
			if p.Blocks().CentralFree() != before {
				exchanges++
			}
		}
		// A goroutine that changes processors, or whose stack moves, may need twice as
		// many.
		if exchanges > 2*gets/batch {
			t.Errorf("%d bytes down the stack: %d batches for %d blocks", depth, exchanges, gets)
		}
	}
	for depth := 0; depth < 4<<10; depth += 128 {
		done := make(chan bool)
		go func() {
			defer close(done)
			atDepth(32<<10, func() {}) // grows the stack first
			atDepth(depth, func() { count(t, depth) })
		}()
		<-done
		p.Reset()
	}
}

// atDepth calls f with about the given bytes more on the stack.
//
//go:noinline
func atDepth(bytes int, f func()) {
	var frame [64]byte
	if bytes <= len(frame) {
		f()
		return
	}
	atDepth(bytes-len(frame)-32, f)
	frame[bytes%len(frame)] = 1
}

// A block that two goroutines free at the same moment has two entries. Once it is handed
// out, a call that finds the second entry panics and hands nothing out.
func TestTwoPutsAtOnceAreFoundByThePool(t *testing.T) {
	defer poison.Set(false)() // a checked pool has no stacks
	for name, get := range map[string]func(b *pool.Blocks) []byte{
		"Alloc": func(b *pool.Blocks) []byte { return freehold.Must(b.Alloc(64, 8)) },
		"GetBatch": func(b *pool.Blocks) []byte {
			one := make([][]byte, 1)
			freehold.Must(b.GetBatch(one))
			return one[0]
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBlocks(t, 64, 8, nil)
			r := get(b)
			b.FreeAtOnce(unsafe.Pointer(&r[0]))
			wantPanic(t, func() { get(b) }, "freed by two goroutines at once")
			b.Trim() // entries of the test on other stacks
			if q := freehold.Must(b.Alloc(64, 8)); &q[0] == &r[0] {
				t.Error("handed out all the same")
			}
		})
	}
	t.Run("Get", func(t *testing.T) {
		p := newPool[node](t, nil)
		n := freehold.Must(p.Get())
		n.key = 42
		p.Blocks().FreeAtOnce(unsafe.Pointer(n))
		wantPanic(t, func() { p.Get() }, "freed by two goroutines at once")
		if n.key != 42 {
			t.Error("cleared all the same")
		}
	})
}

// The central free list has a block at most once, and only if it is free, even if two
// goroutines freed it at the same moment.
func TestCopiesOfABlockFlowBackOnce(t *testing.T) {
	defer poison.Set(false)() // a checked pool has no stacks
	const blocks = 64
	b := newBlocks(t, 64, 8, &pool.Options{MaxBlocks: blocks})
	all := make([][]byte, blocks)
	freehold.Must(b.GetBatch(all))
	r := unsafe.Pointer(&all[0][0])
	b.FreeAtOnce(r)
	b.Trim()
	if n := b.CentralFree(); n != 0 {
		t.Errorf("%d blocks are free, and all are live", n)
	}
	b.Free(all[0])
	b.FreeAtOnce(r)
	b.Trim()
	if n := b.CentralFree(); n != 1 {
		t.Errorf("%d blocks are free for one", n)
	}
}

// Of two concurrent PutHandles of one handle, one frees the value. The other panics because
// the value is gone, not because it was put twice. No seam fits into an atomic operation,
// so the calls are repeated at distances from 0 to about 100 ns.
func TestPutHandleHasOneWinner(t *testing.T) {
	const distances = 300
	rounds := 30000
	switch {
	case pin.Locked:
		rounds = 3000
	case testing.Short():
		rounds = 10000
	}
	p := newPool[node](t, nil)
	handles := make([]pool.Handle[node], rounds)
	for i := range handles {
		handles[i] = p.Handle(freehold.Must(p.Get()))
	}
	var turn [2]struct {
		atomic.Int64 // rounds that a goroutine has begun
		_            [56]byte
	}
	panics := [2][]any{make([]any, rounds), make([]any, rounds)}
	done := make(chan bool)
	for g := range 2 {
		go func() {
			defer func() { done <- true }()
			for i, h := range handles {
				late := 0
				if i%2 == g {
					late = i * 7 % distances
				}
				turn[g].Add(1)
				for spins := 0; turn[1-g].Load() <= int64(i); spins++ { // in step with the other
					if spins > 20000 {
						runtime.Gosched()
					}
				}
				for range late {
				}
				func() {
					defer func() { panics[g][i] = recover() }()
					p.PutHandle(h)
				}()
			}
		}()
	}
	<-done
	<-done
	for i := range handles {
		a, b := panics[0][i], panics[1][i]
		if (a == nil) == (b == nil) {
			t.Fatalf("round %d: %v and %v", i, a, b)
		}
		if a == nil {
			a = b
		}
		if !strings.Contains(fmt.Sprint(a), "the value is gone") {
			t.Fatalf("round %d: %v", i, a)
		}
	}
	if n := p.Live(); n != 0 {
		t.Errorf("%d live", n)
	}
}

// PutBatch is Free of each block, wherever an invalid one is among them.
func TestPutBatchIsFreeOfEach(t *testing.T) {
	const blocks = 300
	for _, guilty := range []int{-1, 0, 1, 63, 64, 127, 128, 129, 255, 256, 299} {
		for name, mistake := range map[string]func(b *pool.Blocks, src [][]byte, i int){
			"double free": func(b *pool.Blocks, src [][]byte, i int) { src[i] = src[(i+blocks-1)%blocks] },
			"is no block": func(b *pool.Blocks, src [][]byte, i int) { src[i] = src[i][:63] },
			"not of this": func(b *pool.Blocks, src [][]byte, i int) { src[i] = make([]byte, 64) },
			"into a block": func(b *pool.Blocks, src [][]byte, i int) {
				src[i] = unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(&src[i][0]), 8)), 64)
			},
		} {
			b := newBlocks(t, 64, 8, &pool.Options{MaxBlocks: blocks})
			src := make([][]byte, blocks)
			freehold.Must(b.GetBatch(src))
			if guilty < 0 {
				b.PutBatch(append(append(src[:100:100], nil, []byte{}), src[100:]...))
			} else {
				want := guilty // number of blocks that are free afterwards
				if name == "double free" && guilty == 0 {
					src[0], want = src[1], 1 // src[1] is the double free
					wantPanic(t, func() { b.PutBatch(src) }, name)
				} else {
					mistake(b, src, guilty)
					wantPanic(t, func() { b.PutBatch(src) }, name)
				}
				if n := b.Live(); n != blocks-want {
					t.Errorf("%s at %d: %d blocks are live", name, guilty, n)
				}
				continue
			}
			seen := map[*byte]bool{}
			n, err := b.GetBatch(src)
			for _, r := range src {
				seen[unsafe.SliceData(r)] = true
			}
			if n != blocks || len(seen) != blocks {
				t.Errorf("%d blocks, %d of them different: %v", n, len(seen), err)
			}
		}
	}
}

// PutBatch fills the stack, and gives further blocks to the central free list without moving
// older ones out first.
func TestPutBatchFillsTheStackOnce(t *testing.T) {
	defer poison.Set(false)() // a checked pool has no stacks
	const blocks, room = 1000, 128
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one stack
	b := newBlocks(t, 64, 8, &pool.Options{MaxBlocks: blocks})
	src := make([][]byte, blocks)
	freehold.Must(b.GetBatch(src))
	b.Free(src[0]) // this processor has a stack
	src[0] = freehold.Must(b.Alloc(64, 8))
	b.PutBatch(src)
	if n := b.CentralFree(); n != blocks-room {
		t.Errorf("%d blocks of %d went on", n, blocks)
	}
}
