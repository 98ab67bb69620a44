// Pages: whole pages from the operating system.

package freehold

import (
	"log/slog"

	"github.com/freehold-go/freehold/internal/heap"
)

// Pages hands out whole pages: every block is rounded up to a multiple of
// 8 KiB, begins at one, is zero at first, and its memory goes back to the
// operating system the moment it is freed. Resize grows a block in place or,
// on Linux and from 1 MiB on, by moving its pages instead of copying them.
//
// It is the allocator to build others on, and for few, large, long-lived
// blocks; each call costs a microsecond or more. It may be used by any
// goroutine, detects the same misuse as a [Heap], and is never closed.
var Pages Owner = newPages()

// pages is a heap of large blocks only.
type pages struct{ h heap.Heap }

func newPages() *pages {
	p := &pages{}
	p.h.Init(heap.Options{Name: "pages", WholePages: true})
	return p
}

func (p *pages) Alloc(size, align int) ([]byte, error)    { return p.h.Alloc(size, align, true) }
func (p *pages) Zeroed(size, align int) ([]byte, error)   { return p.h.Alloc(size, align, true) }
func (p *pages) Resize(b []byte, size int) ([]byte, bool) { return p.h.Resize(b, size) }
func (p *pages) Free(b []byte)                            { p.h.Free(b) }
func (p *pages) Owns(b []byte) bool                       { return p.h.Owns(b) }
func (p *pages) GoodSize(size int) int                    { return p.h.GoodSize(size) }
func (p *pages) String() string                           { return describe(statsOf(p.h.Stats())) }
func (p *pages) LogValue() slog.Value                     { return logValue(statsOf(p.h.Stats())) }
