//go:build asan

package sanitizers

import (
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/pool"
)

func TestAddressSanitizerReports(t *testing.T) { testPrograms(t, "asan_test.go") }

var address = regexp.MustCompile(` at pc (0x[0-9a-f]+) `)

// guilty returns the line of the access in a child's report. go test builds programs without the
// tables that the sanitizer reads, so guilty looks the address up in this process: the child
// runs the same program.
func guilty(report string) string {
	found := address.FindStringSubmatch(report)
	if found == nil {
		return ""
	}
	pc, _ := strconv.ParseUint(found[1], 0, 64)
	frame, _ := runtime.CallersFrames([]uintptr{uintptr(pc)}).Next()
	return fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line)
}

const (
	poisoned  = "ERROR: AddressSanitizer: use-after-poison"
	sanitizer = "ERROR: AddressSanitizer"
)

var sink byte

//go:noinline
func at(b []byte, i int) *byte { return (*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), i)) }

func alloc(a freehold.Allocator, size int) []byte { return freehold.Must(a.Alloc(size, 8)) }

func newHeap() *freehold.Heap { return freehold.NewHeap(nil) }

type value struct{ a, b, c uint32 }

var programs = []program{
	{name: "read after Free", reports: poisoned,
		do: func() {
			h := newHeap()
			b := alloc(h, 64)
			h.Free(b)
			sink = *at(b, 5) // bug: read after Free
		},
		twin: func() {
			h := newHeap()
			b := alloc(h, 64)
			sink = *at(b, 5)
			h.Free(b)
		}},
	{name: "write after Free of a large block", reports: poisoned,
		do: func() {
			h := newHeap()
			b := alloc(h, 9<<20) // more than the quarantine holds
			h.Free(b)
			*at(b, 8<<20) = 1 // bug: write after Free of a large block
		},
		twin: func() {
			h := newHeap()
			b := alloc(h, 9<<20)
			*at(b, 8<<20) = 1
			h.Free(b)
			b = freehold.Must(h.Zeroed(10<<20, 8))
			*at(b, 8<<20)++
		}},
	{name: "write after Free and Trim", reports: poisoned,
		do: func() {
			h := newHeap()
			b := alloc(h, 64)
			h.Free(b)
			h.Trim()
			*at(b, 0) = 1 // bug: write after Free and Trim
		},
		twin: func() {
			h := newHeap()
			b := alloc(h, 64)
			h.Free(b)
			h.Trim()
			for range 1000 {
				b = freehold.Must(h.Zeroed(64, 8))
				*at(b, 0)++
			}
		}},
	{name: "copy beyond the end", reports: sanitizer, inCopy: true,
		do: func() {
			b := alloc(newHeap(), 64)
			copy(unsafe.Slice(&b[0], 65), make([]byte, 65)) // bug: copy beyond the end
		},
		twin: func() {
			b := alloc(newHeap(), 64)
			copy(unsafe.Slice(&b[0], 64), make([]byte, 65))
		}},
	{name: "write to what Resize has cut off", reports: poisoned,
		do: func() {
			h := newHeap()
			b := alloc(h, 200_000)
			h.Resize(b, 100_000)
			*at(b, 150_000) = 1 // bug: write to what Resize has cut off
		},
		twin: func() {
			h := newHeap()
			b := alloc(h, 200_000)
			b, _ = h.Resize(b, 100_000)
			if r, ok := h.Resize(b, 200_000); ok {
				b = r
			}
			*at(b, len(b)-1) = 1
			c := alloc(h, 500_000)
			*at(c, 450_000) = 1
		}},
	{name: "read of a block that Realloc has moved", reports: poisoned,
		do: func() {
			h := newHeap()
			b := alloc(h, 64)
			freehold.Must(freehold.Realloc(h, b, 5000, 8))
			sink = *at(b, 5) // bug: read of a block that Realloc has moved
		},
		twin: func() {
			h := newHeap()
			b := freehold.Must(freehold.Realloc(h, alloc(h, 64), 5000, 8))
			sink = *at(b, 4999)
		}},
	{name: "write to the buffer of a fixed arena", reports: poisoned,
		do: func() {
			buf := alloc(newHeap(), 1000)
			alloc(arena.NewFixed(buf), 64)
			*at(buf, 100) = 1 // bug: write to the buffer of a fixed arena
		},
		twin: func() {
			buf := alloc(newHeap(), 1000)
			a := arena.NewFixed(buf)
			alloc(a, 64)
			*at(buf, 63) = 1
			a.Close()
			*at(buf, 100) = 1
		}},
	{name: "read of a value after Put", reports: poisoned,
		do: func() {
			p := pool.New[value](newHeap(), nil)
			v := freehold.Must(p.Get())
			p.Put(v)
			sink = byte(v.c) // bug: read of a value after Put
		},
		twin: func() {
			h := newHeap()
			p := pool.New[value](h, nil)
			c := p.NewCache()
			for range 1000 {
				v, u := freehold.Must(p.Get()), freehold.Must(c.Get())
				*v, *u = value{1, 2, 3}, value{4, 5, 6}
				sink = byte(v.c + u.c)
				p.Put(u)
				c.Put(v)
			}
			v := freehold.Must(p.Get())
			p.Retire(v)
			c.Close()
			p.Trim()
			*freehold.Must(p.Get()) = value{}
			p.Reset()
			*freehold.Must(p.Get()) = value{}
			p.Close()
			*at(alloc(h, 100_000), 99_999) = 1
		}},
	{name: "write after Put to a cache", reports: poisoned,
		do: func() {
			c := pool.New[value](newHeap(), nil).NewCache()
			v := freehold.Must(c.Get())
			c.Put(v)
			v.a = 1 // bug: write after Put to a cache
		},
		twin: func() {
			c := pool.New[value](newHeap(), nil).NewCache()
			v := freehold.Must(c.Get())
			v.a = 1
			c.Put(v)
		}},
	{name: "read after Free, another heap's Close between", reports: poisoned,
		do: func() {
			g, h := newHeap(), newHeap()
			alloc(g, 64)
			b := alloc(h, 64)
			h.Free(b)
			g.Close()
			sink = *at(b, 5) // bug: read after Free, another heap's Close between
		},
		twin: func() { // the addresses of closed heaps are reused
			for range 3 {
				h := newHeap()
				for i := range 300 {
					b := alloc(h, 1+i*200)
					*at(b, i*200) = 1
					h.Free(b)
				}
				h.Close()
				w := freehold.Must(freehold.Pages().Alloc(1<<20, 8))
				*at(w, 1<<20-1) = 1
				freehold.Pages().Free(w)
			}
		}},
}
