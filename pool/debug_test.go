//go:build freehold_debug

package pool_test

import (
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/pool"
)

// A debug build detects a write to a free block when it is handed out again, for all calls
// that free and allocate blocks.
func TestDebugBuildFindsLateWrites(t *testing.T) {
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
		{"a cache", func(b *pool.Blocks) {
			c := b.NewCache()
			r := freehold.Must(c.Get())
			c.Put(r)
			write(r)
			c.Get()
		}},
		{"a cache that filled up", func(b *pool.Blocks) {
			c := b.NewCache()
			var rs [200][]byte
			for i := range rs {
				rs[i] = freehold.Must(b.Alloc(64, 8))
			}
			for _, r := range rs {
				c.Put(r)
			}
			write(rs[199])
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
