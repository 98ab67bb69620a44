// Mappings: a heap in a process that has used up its mappings. Linux permits 65,530 by default.

//go:build !race

package heap_test

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/heap"
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/test/child"
)

// hoard is mappings that the kernel gives to one process, all of them or all but
// some.
type hoard struct {
	stripes []byte // pages of two kinds in turn, a mapping each
	striped int    // how many of the second kind there are
	pages   []unsafe.Pointer
}

// newHoard takes mappings until the kernel refuses every kind.
func newHoard(t *testing.T) *hoard {
	t.Helper()
	page, most := unix.Getpagesize(), 1<<16
	all, err := unix.Mmap(-1, 0, 2*most*page, unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		t.Fatal(err)
	}
	h := &hoard{stripes: all, pages: make([]unsafe.Pointer, 0, 1000)}
	for unix.Mprotect(h.stripe(h.striped), unix.PROT_READ) == nil {
		if h.striped++; h.striped == most-1 {
			t.Skip("the kernel lets a process have very many mappings")
		}
	}
	h.fill()
	return h
}

func (h *hoard) stripe(i int) []byte {
	page := unix.Getpagesize()
	return h.stripes[(2*i+1)*page:][:page]
}

// fill takes what mappings there are. Shared memory is never joined with its
// neighbours.
func (h *hoard) fill() {
	for len(h.pages) < cap(h.pages) {
		p, err := unix.MmapPtr(-1, 0, nil, uintptr(unix.Getpagesize()), unix.PROT_READ, unix.MAP_ANON|unix.MAP_SHARED)
		if err != nil {
			return
		}
		h.pages = append(h.pages, p)
	}
}

// release leaves at least n mappings to others.
func (h *hoard) release(n int) {
	for range n {
		if last := len(h.pages) - 1; last >= 0 {
			_ = unix.MunmapPtr(h.pages[last], uintptr(unix.Getpagesize()))
			h.pages = h.pages[:last]
		} else if h.striped > 0 {
			h.striped--
			_ = unix.Mprotect(h.stripe(h.striped), unix.PROT_NONE)
		}
	}
}

func (h *hoard) drop() {
	h.release(len(h.pages))
	_ = unix.Munmap(h.stripes)
}

// short is a heap with a given number of spare mappings during each call. Between the calls the Go
// runtime has more: it dies of a refusal.
type short struct {
	*heap.Heap
	hoard *hoard
	spare int
}

const forGo = 6

func (s short) begin() { s.hoard.fill(); s.hoard.release(s.spare) }
func (s short) end()   { s.hoard.release(forGo) }

func (s short) Alloc(size, align int) ([]byte, error) {
	s.begin()
	defer s.end()
	return s.Heap.Alloc(size, align, false)
}

func (s short) Zeroed(size, align int) ([]byte, error) {
	s.begin()
	defer s.end()
	return s.Heap.Alloc(size, align, true)
}

func (s short) Resize(b []byte, size int) ([]byte, bool) {
	s.begin()
	defer s.end()
	return s.Heap.Resize(b, size)
}

func (s short) Free(b []byte) {
	s.begin()
	defer s.end()
	s.Heap.Free(b)
}

func (s short) do(call func()) {
	s.begin()
	defer s.end()
	call()
}

// When no mappings are left, blocks move by copy or there is an error; nothing
// panics, no byte changes, and all is well once there are mappings again.
func TestMappingsRunOut(t *testing.T) {
	if !child.Is(t) {
		for range 5 {
			out, errs, err := child.Run(t)
			switch {
			case strings.Contains(errs, "fatal error: runtime: cannot allocate memory"),
				strings.Contains(errs, "fatal error: runtime: out of memory"),
				strings.Contains(errs, "fatal error: out of memory"):
				// The Go runtime was refused a mapping: try again.
			case err != nil || !strings.Contains(out, "--- PASS") && !strings.Contains(out, "--- SKIP"):
				t.Fatalf("%v\n%s%s", err, out, errs)
			default:
				t.Log(out)
				return
			}
		}
		t.Skip("the Go runtime died of it each time")
	}
	// Let there be much in the Go heap that is free.
	for range 1 << 20 {
		small = append(small, new([3]uintptr))
	}
	small = nil
	for range 3 {
		runtime.GC()
	}
	debug.SetGCPercent(-1)
	const calls = 300
	r := rand.New(rand.NewPCG(1, 65530))
	movesRefused := 0
	for _, spare := range []int{0, 1, 2, 3, 4, 6, 10, 100} {
		h := heap.NewHeap(t, heap.Options{})
		closing := heap.NewHeap(t, heap.Options{})
		var live [][]byte
		hold := func(b []byte) {
			for i := range b {
				b[i] = byte(len(live))
			}
			live = append(live, b)
		}
		alloc := func(h *heap.Heap, size int) []byte {
			t.Helper()
			return freehold.Must(h.Alloc(size, 8, false))
		}
		// Blocks of every kind, two of them moved to where they are.
		for _, size := range []int{10, 100, 3000, 40000, 1 << 20, 9 << 20, 9 << 20} {
			b := alloc(h, size)
			if size > 8<<20 {
				alloc(h, 10000) // in the way
				if moved, ok := h.Resize(b, 2*size); ok {
					b = moved
				}
			}
			hold(b)
		}
		for _, size := range []int{100, 100000, 5 << 20} {
			b := alloc(closing, size)
			for i := range b {
				b[i] = 0xEE
			}
			closing.Resize(b, 2*size)
		}

		hoard := newHoard(t)
		hoard.release(forGo)
		s := short{h, hoard, spare}
		alloctest.RunProgram(t, s, program(r, calls))
		for i, b := range live {
			moved, ok := s.Resize(b, len(b)*2)
			if !ok && len(b) > 8<<20 {
				movesRefused++
			}
			if ok {
				live[i] = moved[:len(b)]
				s.Resize(moved, len(b))
			}
		}
		h.Stats()
		s.do(h.Tick)
		s.do(h.Trim)
		heap.Check(h, t)
		s.do(closing.Close)
		next := heap.NewHeap(t, heap.Options{}) // where closing was
		for _, size := range []int{100, 100000, 5 << 20, 64 << 20} {
			b, err := short{next, hoard, spare}.Zeroed(size, 8)
			if err != nil && !errors.Is(err, pages.ErrOutOfMemory) {
				t.Errorf("%d mappings left: %v", spare, err)
			} else if err == nil && !heap.AllSet(b, 0) {
				t.Errorf("%d mappings left: a block of %d bytes is not zero", spare, size)
			}
		}
		s.do(next.Close)
		hoard.drop()

		for i, b := range live {
			if !heap.AllSet(b, byte(i)) {
				t.Errorf("%d mappings left: block %d of %d bytes has changed", spare, i, len(b))
			}
		}
		h.Tick()
		heap.Check(h, t)
		alloctest.RunProgram(t, heap.Adapter{h}, program(r, calls))
		big := alloc(h, 9<<20)
		alloc(h, 10000)
		if _, ok := h.Resize(big, 64<<20); !ok {
			t.Errorf("%d mappings left, and then again many: a block does not move", spare)
		}
		heap.Check(h, t)
		h.Close()
		if t.Failed() {
			return
		}
	}
	if movesRefused == 0 {
		t.Error("the mappings were never used up")
	}
	t.Logf("%d moves refused", movesRefused)
}

var small []*[3]uintptr // is filled to be freed
