// Double frees by two goroutines at once: a block with two entries has one owner.

package pool

import (
	"errors"
	"strings"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/asan"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/internal/poison"
)

// fill writes to all of the block at p: the parent's memory, if the chunk was returned.
func (b *Blocks) fill(p unsafe.Pointer) {
	asan.Unpoison(unsafe.Slice((*byte)(p), b.bytes)) // as a Get does
	for i := range unsafe.Slice((*byte)(p), b.bytes) {
		*(*byte)(unsafe.Add(p, i)) = 5
	}
}

// liveByASecondEntry returns a block that came back to its chunk by one entry, and was
// handed out by the other. It is the third of the chunk, whose others are free.
func (b *Blocks) liveByASecondEntry() unsafe.Pointer {
	var all [3]unsafe.Pointer
	for i := range all {
		all[i] = freehold.Must(b.get())
	}
	for _, p := range all {
		b.put(p)
	}
	b.drain()
	b.TakeAtOnce(all[2])
	b.fill(all[2])
	return all[2]
}

// liveOfACache is liveByASecondEntry, whose second entry was in c: the block was put there
// and freed at once.
func liveOfACache(c *Cache[values]) unsafe.Pointer {
	p, b := unsafe.Pointer(freehold.Must(c.Get())), c.cache.blocks
	c.cache.giveOldest(c.cache.len())
	st := b.statusOf(uintptr(p))
	was := st.load()
	b.put(p)
	b.drain()
	st.store(was)
	return p
}

type values [8]uint64

func TestLiveBlockKeepsItsChunk(t *testing.T) {
	parent := alloctest.New(t) // finds writes to what it got back
	p := New[values](parent, nil)
	pools := []*Blocks{&p.blocks}
	for _, size := range []int{64, 1024, 9000} {
		pools = append(pools, NewBlocks(parent, size, 8, nil))
	}
	for _, b := range pools {
		for _, ofCache := range []bool{false, true} {
			live, closeCache := unsafe.Pointer(nil), func() {}
			switch {
			case !ofCache:
				live = b.liveByASecondEntry()
			case b == &p.blocks:
				c := p.NewCache()
				live, closeCache = liveOfACache(c), c.Close
			default:
				continue // plain blocks have no caches
			}
			b.trim("")
			if len(b.central.chunks) == 0 {
				t.Errorf("%s, of a cache %t: the chunk of a live block was returned", b.contents(), ofCache)
			}
			b.fill(live)
			b.put(live) // of an innocent owner: it does not panic
			closeCache()
			b.trim("")
			if s := b.stats(""); s.Chunks != 0 || s.Reserved != 0 || s.Live != 0 {
				t.Errorf("%+v", s)
			}
		}
		b.close("")
	}
}

// A call that finds a live block among the free ones of a chunk panics. Later ones have
// the rest.
func TestLiveBlockIsNotTakenFromItsChunk(t *testing.T) {
	const blocks = 100
	parent := alloctest.New(t)
	plain := NewBlocks(parent, 64, 8, &Options{MaxBlocks: blocks})
	typed := New[values](parent, &Options{MaxBlocks: blocks})
	c := typed.NewCache()
	first := func(r []byte, _ error) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(r)) }
	for name, get := range map[string]func() unsafe.Pointer{
		"Alloc":  func() unsafe.Pointer { return first(plain.Alloc(64, 8)) },
		"Zeroed": func() unsafe.Pointer { return first(plain.Zeroed(64, 8)) },
		"GetBatch": func() unsafe.Pointer {
			one := make([][]byte, 1)
			plain.GetBatch(one)
			return first(one[0], nil)
		},
		"Get": func() unsafe.Pointer {
			v, _ := typed.Get()
			return unsafe.Pointer(v)
		},
		"Cache": func() unsafe.Pointer {
			v, _ := c.Get()
			return unsafe.Pointer(v)
		},
	} {
		b := plain
		if name == "Get" || name == "Cache" {
			b = &typed.blocks
		}
		live := b.liveByASecondEntry()
		found := 0
		var others []unsafe.Pointer
		for range 2 * blocks {
			var p unsafe.Pointer
			got := panics.Of(func() { p = get() })
			switch {
			case strings.Contains(got, "it was freed by two goroutines at once"):
				found++
			case got != "":
				t.Error(got)
			case p != nil:
				others = append(others, p)
				if p == live {
					t.Errorf("%s: the block has two owners", name)
				}
			}
		}
		if found != 1 || len(others) != blocks-1 {
			t.Errorf("%s: %d panics and %d blocks, want 1 and %d", name, found, len(others), blocks-1)
		}
		for _, p := range append(others, live) {
			b.put(p)
		}
		if n := b.Live(); n != 0 {
			t.Errorf("%s: %d blocks are live", name, n)
		}
		b.trim("")
	}
	c.Close()
	typed.Close()
	plain.Close()
}

// Blocks on their way from a chunk to a stack are neither handed out nor come back by a
// second entry.
func TestMovingBlockHasNoOtherOwner(t *testing.T) {
	defer poison.Set(false)() // a checked pool has no stacks
	var batch [8]entry
	b := NewBlocks(alloctest.New(t), 64, 8, &Options{MaxBlocks: len(batch)})
	defer b.Close()
	freehold.Must(b.take("", batch[:]))
	if live := b.Live(); live != 0 || b.exhausted() {
		t.Errorf("%d blocks are live, exhausted %t; all are on their way", live, b.exhausted())
	}
	before := b.CentralFree()
	b.giveBack(batch[:1], statusFree)
	if b.CentralFree() != before {
		t.Error("a block came back while it was on its way out")
	}
	b.FreeAtOnce(pointer(batch[1].addr))
	if got := panics.Of(func() { b.get() }); !strings.Contains(got, "freed by two goroutines at once") {
		t.Errorf("a block on its way out was handed out: %q", got)
	}
	b.giveBack(batch[:], statusMoving)
	b.drain()
	if b.CentralFree() != before+len(batch) {
		t.Error("blocks were lost")
	}
}

// While Trim returns a chunk, a second entry of a block in it finds no free block, comes
// on no stack that stays, and keeps the chunk if it was handed out before.
func TestSecondEntryDuringTrim(t *testing.T) {
	defer poison.Set(false)() // a checked pool has no stacks
	for _, taken := range []bool{false, true} {
		b := NewBlocks(alloctest.New(t), 64, 8, nil)
		r := freehold.Must(b.Alloc(64, 8))
		b.Free(r)
		b.drain()
		b.addStacks()
		second := entry{addrOf(r), uintptr(unsafe.Pointer(b.statusOf(addrOf(r))))}
		slot := b.stacks.Enter()
		held := b.stacks.Value(slot)
		b.stacks.Leave(slot)
		waits := 0
		restore := onWait(b, func() {
			waits++
			if statusAt(second.status).load() == statusFree {
				t.Error("the block can be handed out while its chunk is returned")
			}
			if taken { // by a goroutine that found it free before
				statusAt(second.status).store(statusLive)
				return
			}
			held.entries[0] = second // by a goroutine that found the chunk before
			held.n.store(1)
		})
		b.Trim()
		restore()
		if waits != 1 {
			t.Fatalf("%d waits", waits)
		}
		if b.stacks.Any((*stack).some) {
			t.Error("a stack has a block of a chunk that is gone")
		}
		if taken {
			b.fill(unsafe.Pointer(&r[0]))
			b.Free(r)
			b.Trim()
		}
		if s := b.Stats(); s.Chunks != 0 || s.Live != 0 {
			t.Errorf("%+v", s)
		}
		b.Close()
	}
}

// A block was retired and freed at once, and is live by the other entry. The one on the retire list
// does not free it when its guards have left, nor if the block is retired again.
func TestBlockFreedAndRetiredAtOnceIsFreedByItsOwner(t *testing.T) {
	for _, again := range []bool{false, true} {
		b := NewBlocks(alloctest.New(t), 64, 8, &Options{MaxBlocks: 1})
		first := b.Enter()
		r := freehold.Must(b.Alloc(64, 8))
		b.Retire(r)
		b.collect(true)
		b.TakeAtOnce(unsafe.Pointer(&r[0]))
		second := b.Enter()
		if again {
			b.Retire(r)
			b.collect(true)
		}
		first.Leave()
		if q, err := b.Alloc(64, 8); !errors.Is(err, freehold.ErrOutOfMemory) {
			t.Errorf("retired again %t: the block at %p has two owners, %p", again, &r[0], &q[0])
		}
		if !again {
			b.Free(r)
		}
		second.Leave()
		if _, err := b.Alloc(64, 8); err != nil {
			t.Error(err)
		}
		b.Close()
	}
}

// As before, and the chunk was returned meanwhile.
func TestLimboLeavesReturnedMemoryAlone(t *testing.T) {
	b := NewBlocks(alloctest.New(t), 64, 8, nil) // finds writes to the metadata
	defer b.Close()
	g := b.Enter()
	r := freehold.Must(b.Alloc(64, 8))
	b.Retire(r)
	b.TakeAtOnce(unsafe.Pointer(&r[0]))
	b.Free(r)
	b.Trim()
	if len(b.central.chunks) != 0 {
		t.Fatal("the chunk is still there")
	}
	g.Leave()
	b.Trim()
	if s := b.Stats(); s.Retired != 0 {
		t.Errorf("%+v", s)
	}
}
