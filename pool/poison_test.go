//go:build !asan

package pool_test

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/internal/poison"
	"github.com/freehold-go/freehold/pool"
)

// A checked pool detects a write to the padding behind a block when the block is freed,
// in every call that does so, and nothing is freed then.
func TestCheckedPoolFindsWritesToThePadding(t *testing.T) {
	defer poison.Set(true)()
	const size = 60 // of 64 bytes
	for name, free := range map[string]func(b *pool.Blocks, r []byte){
		"pool.Blocks.Free":   (*pool.Blocks).Free,
		"pool.Blocks.Retire": (*pool.Blocks).Retire,
	} {
		for _, at := range []int{60, 63} {
			b := pool.NewBlocks(alloctest.New(t), size, 4, nil)
			r := freehold.Must(b.Alloc(size, 4))
			beyond := unsafe.Slice(unsafe.SliceData(r), 64)
			beyond[at] = 1
			want := fmt.Sprintf("pool of 60-byte blocks: it was written %s beyond its end", arg.Bytes(at-size+1))
			if got := panics.Of(func() { free(b, r) }); !strings.HasPrefix(got, "freehold: "+name+": ") || !strings.HasSuffix(got, want) {
				t.Errorf("%s, byte %d: panic %q, want %q", name, at, got, want)
			}
			if live := b.Live(); live != 1 {
				t.Errorf("%s: %d blocks are live", name, live)
			}
			beyond[at] = poison.Fill
			b.Free(r)
			b.Close()
		}
	}
}

// PutBatch frees the blocks before the one that was written beyond its end.
func TestCheckedPoolFindsWritesToThePaddingInABatch(t *testing.T) {
	defer poison.Set(true)()
	b := pool.NewBlocks(alloctest.New(t), 60, 4, nil)
	defer b.Close()
	var rs [3][]byte
	b.GetBatch(rs[:])
	unsafe.Slice(unsafe.SliceData(rs[1]), 64)[60] = 1
	if got := panics.Of(func() { b.PutBatch(rs[:]) }); !strings.Contains(got, "written 1 byte beyond its end") {
		t.Errorf("panic %q", got)
	}
	if live := b.Live(); live != 2 {
		t.Errorf("%d blocks are live", live)
	}
}

// The caller may write all of a value, and the padding behind it stays poison.
func TestCheckedPoolRaisesNoFalseAlarmForPadding(t *testing.T) {
	defer poison.Set(true)()
	type value struct{ a, b, c uint32 }
	p := pool.New[value](alloctest.New(t), nil)
	defer p.Close()
	c := p.NewCache()
	defer c.Close()
	for range 300 {
		v := freehold.Must(p.Get())
		*v = value{1, 2, 3}
		c.Put(v)
		v = freehold.Must(c.Get())
		*v = value{1, 2, 3}
		p.Put(v)
		v = freehold.Must(c.Get())
		*v = value{1, 2, 3}
		c.Put(v)
		v = freehold.Must(p.Get())
		*v = value{1, 2, 3}
		p.Retire(v)
	}
	v := freehold.Must(c.Get())
	*at(v, 12) = 1
	if got := panics.Of(func() { c.Put(v) }); !strings.HasPrefix(got, "freehold: pool.Cache.Put: ") {
		t.Errorf("panic %q", got)
	}
	*at(v, 12) = poison.Fill
	c.Put(v)
}

func at[T any](v *T, offset int) *byte { return (*byte)(unsafe.Add(unsafe.Pointer(v), offset)) }

// A checked pool detects a write to a free block when it is handed out again, for all calls
// that free and allocate blocks.
func TestCheckedPoolFindsLateWrites(t *testing.T) {
	defer poison.Set(true)()
	write := func(b []byte) { b[17] = 1 }
	tests := []struct {
		name string
		do   func(b *pool.Blocks)
	}{
		{"Free, Alloc", func(b *pool.Blocks) {
			r := freehold.Must(b.Alloc(64, 8))
			b.Free(r)
			write(r)
			b.Alloc(64, 8)
		}},
		{"PutBatch, GetBatch", func(b *pool.Blocks) {
			var rs [3][]byte
			b.GetBatch(rs[:])
			b.PutBatch(rs[:])
			write(rs[1])
			b.GetBatch(rs[:])
		}},
		{"a cache", func(*pool.Blocks) {
			c := newCached(t, nil).NewCache()
			r := freehold.Must(c.Get())
			c.Put(r)
			write(r)
			c.Get()
		}},
		{"Retire", func(b *pool.Blocks) {
			r := freehold.Must(b.Alloc(64, 8))
			g := b.Enter()
			b.Retire(r)
			write(r) // readers may still be there
			g.Leave()
			b.Trim() // the block is free now
			write(r)
			for range 1000 {
				b.Alloc(64, 8)
			}
		}},
		{"Reset", func(b *pool.Blocks) {
			r := freehold.Must(b.Alloc(64, 8))
			b.Reset()
			write(r)
			for range 1000 {
				b.Alloc(64, 8)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := pool.NewBlocks(alloctest.New(t), 64, 8, nil)
			defer b.Close()
			keep := freehold.Must(b.Alloc(64, 8)) // makes Trim keep the chunk
			defer func() {
				got, _ := recover().(string)
				if !strings.Contains(got, "was written while the block was free") {
					t.Errorf("panic %q", got)
				}
				_ = keep
			}()
			tt.do(b)
		})
	}
}

// A late write is reported once, by whichever call looks at the block, and the block is free
// afterwards.
func TestCheckedPoolReportsALateWriteOnce(t *testing.T) {
	defer poison.Set(true)()
	for name, look := range map[string]func(b *pool.Blocks){
		"pool.Blocks.Alloc": func(b *pool.Blocks) { b.Free(freehold.Must(b.Alloc(64, 8))) },
		"pool.Blocks.Reset": (*pool.Blocks).Reset,
		"pool.Blocks.Trim":  (*pool.Blocks).Trim,
		"pool.Blocks.Close": (*pool.Blocks).Close,
	} {
		b := pool.NewBlocks(alloctest.New(t), 64, 8, nil)
		r := freehold.Must(b.Alloc(64, 8))
		b.Free(r)
		r[17] = 1
		if got := panics.Of(func() { look(b) }); !strings.HasPrefix(got, "freehold: "+name+": ") || !strings.Contains(got, "byte 17 was written while the block was free") {
			t.Errorf("%s: panic %q", name, got)
		}
		look(b)
		if name != "pool.Blocks.Close" {
			b.Trim()
		}
		if st := b.Stats(); st.Reserved != 0 {
			t.Errorf("%s: %d bytes are still reserved", name, st.Reserved)
		}
		b.Close()
	}
}
