// Resize: in place, and by moving pages.

package heap

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

// moved returns a block of 4 MiB that was moved there, and skips the test where
// pages are not moved.
func moved(t *testing.T, h *Heap) []byte {
	t.Helper()
	b := alloc(t, h, 1<<20)
	alloc(t, h, 40000) // so that it cannot grow in place
	fill(b, 1)
	r, ok := h.Resize(b, 4<<20)
	if !ok {
		t.Skip("pages are not moved here")
	}
	if addrOf(r) == addrOf(b) {
		t.Fatal("the block grew in place")
	}
	return r
}

func TestResizeSmall(t *testing.T) {
	h := newHeap(t, Options{})
	tests := []struct {
		from, to int
		ok       bool
	}{
		{100, 112, true},  // to the end of its block
		{100, 113, false}, // beyond
		{100, 57, true},   // more than half of the block stays in use
		{100, 56, false},  // a copy saves half
		{100, 0, true},    // freed
		{32768, 32769, false},
		{40000, 32768, false}, // from a run to a class
		{40000, 49152, true},  // to the end of its pages
	}
	for _, tt := range tests {
		b := alloc(t, h, tt.from)
		fill(b, 7)
		r, ok := h.Resize(b, tt.to)
		if ok != tt.ok {
			t.Errorf("%d to %d: %v", tt.from, tt.to, ok)
		}
		if !ok {
			r = b
		} else if len(r) != tt.to || cap(r) != tt.to {
			t.Errorf("%d to %d: len %d, cap %d", tt.from, tt.to, len(r), cap(r))
		}
		if !allSet(r[:min(len(r), tt.from)], 7) {
			t.Errorf("%d to %d: contents changed", tt.from, tt.to)
		}
		h.Free(r)
	}
	if r, ok := h.Resize(nil, 0); !ok || r == nil {
		t.Errorf("Resize(nil, 0) = %v, %v", r, ok)
	}
	if _, ok := h.Resize(nil, 10); ok {
		t.Error("Resize(nil, 10) succeeded")
	}
}

// A large block grows over what is free behind it, into addresses that nobody
// had, or by moving its pages; never by a copy on Linux.
func TestResizeLarge(t *testing.T) {
	h := newHeap(t, Options{})
	b, err := h.Alloc(1<<20, 4096, false)
	if err != nil {
		t.Fatal(err)
	}
	fill(b, 1)
	var blockers [][]byte
	size, top := 1<<20, 256<<20
	switch {
	case vm.GoBacked:
		top = 32 << 20
	case testing.Short():
		top = 64 << 20
	}
	for step := byte(2); size < top; step++ {
		blockers = append(blockers, alloc(t, h, 50000)) // sometimes it is behind the block
		old := size
		size *= 2
		r, ok := h.Resize(b, size)
		if !ok {
			if runtime.GOOS == "linux" && !vm.GoBacked {
				t.Fatalf("to %d: needs a copy", size)
			}
			if r, err = h.Alloc(size, 4096, false); err != nil {
				t.Fatal(err)
			}
			copy(r, b)
			h.Free(b)
		}
		b = r
		if uintptr(unsafe.Pointer(&b[0]))%4096 != 0 {
			t.Fatalf("to %d: the alignment is gone", size)
		}
		for at := 0; at < old; at += 4096 {
			want := byte(1)
			for edge := 1 << 20; edge <= at; edge *= 2 {
				want++
			}
			if b[at] != want || b[at+4095] != want {
				t.Fatalf("to %d: byte %d is %d, want %d", size, at, b[at], want)
			}
		}
		fill(b[old:], step)
		h.check(t)
	}
	if st := h.Stats(); st.LargeBytes < size || st.LargeBytes > size+2<<20 {
		t.Errorf("%+v", st)
	}
	for size > 100<<10 {
		size /= 3
		r, ok := h.Resize(b, size)
		if !ok || !allSet(r[:min(size, 1<<20)], 1) {
			t.Fatalf("down to %d: %v", size, ok)
		}
		b = r
		h.check(t)
	}
	h.Free(b)
	for _, b := range blockers {
		h.Free(b)
	}
	h.Trim()
	if st := h.Stats(); st.Committed != st.Metadata {
		t.Errorf("after Trim: %+v", st)
	}
	h.check(t)
}

func TestMovedBlockKeepsItsAlignment(t *testing.T) {
	const align, pages = 1 << 20, 3 << 20 / pageBytes
	h := newHeap(t, Options{})
	b, err := h.Alloc(1<<20, align, false)
	if err != nil {
		t.Fatal(err)
	}
	h.Free(alloc(t, h, 32<<20)) // room to move to ...
	for h.pages.free.fit(pages) == nil || h.pages.free.fit(pages).base%align == 0 {
		alloc(t, h, 40000) // ... that begins at no multiple
	}
	alloc(t, h, 40000)
	r, ok := h.Resize(b, pages*pageBytes)
	if !ok {
		t.Skip("pages are not moved here")
	}
	if addrOf(r) == addrOf(b) || addrOf(r)%align != 0 {
		t.Errorf("a block at %#x, a multiple of %#x, was moved to %#x", addrOf(b), align, addrOf(r))
	}
}

// Each mapping that a move makes is one too many for those that a process may
// have, until the pages are mapped anew.
func TestMovedPagesAreMappedAnewBeforeOthersHaveThem(t *testing.T) {
	h := newHeap(t, Options{HugePages: true})
	var b []byte
	var calls [vm.NumOps]int
	renewed := func(after string) {
		t.Helper()
		if calls[vm.OpRenew] != 1 || calls[vm.OpAdvise] == 0 || calls[vm.OpName] == 0 {
			t.Errorf("after %s the pages were mapped anew %d times, huge ones asked for %d times, and a name given %d times",
				after, calls[vm.OpRenew], calls[vm.OpAdvise], calls[vm.OpName])
		}
	}
	calls = callsOf(func() { b = moved(t, h) })
	renewed("the move from them")
	calls = callsOf(func() { b, _ = h.Resize(b, 2<<20) })
	renewed("they were cut off")
	calls = callsOf(func() { h.Free(b) })
	renewed("Free")
}

// A block that cannot be cut, for its tables would exceed the limit, keeps its pages.
func TestCutThatTheLimitRefuses(t *testing.T) {
	h := newHeap(t, Options{MaxBytes: 64 << 20})
	b := alloc(t, h, 5*segmentBytes)
	h.pages.maxBytes = h.pages.committed
	r, ok := h.Resize(b, len(b)/2)
	if s := spanAt(addrOf(b)); !ok || s.bytes() != uintptr(len(b)) {
		t.Fatalf("Resize: %v, with %d bytes of pages", ok, s.bytes())
	}
	h.check(t) // which finds metadata that nobody has
	h.Free(r)
}

// At its limit a heap serves a small block by pages, and shrinks it all the same.
func TestSmallBlockThatIsPagesIsResized(t *testing.T) {
	h := newHeap(t, Options{MaxBytes: 128 << 10})
	var live [][]byte
	tried := 0
	for {
		b, err := h.Alloc(5000, 8, false)
		if err != nil {
			break
		}
		fill(b, 5)
		live = append(live, b)
	}
	for i, b := range live {
		if spanAt(uintptr(unsafe.Pointer(&b[0]))).kind != largeRun {
			continue
		}
		tried++
		for _, size := range []int{100, 8000, 2000} {
			r, ok := h.Resize(b, size)
			if !ok || len(r) != size || !allSet(r[:100], 5) {
				t.Fatalf("Resize of %d bytes to %d: %v", len(b), size, ok)
			}
			b = r
		}
		if _, ok := h.Resize(b, pageBytes+1); ok {
			t.Error("a small block grew over pages that a class serves better")
		}
		live[i] = b
	}
	if tried == 0 {
		t.Error("no small block is pages: try another limit")
	}
	for _, b := range live {
		h.Free(b)
	}
}

// A Resize that looked at a block before another goroutine freed or resized it changes
// nothing.
func TestResizeOfWhatAnotherHasFreed(t *testing.T) {
	for _, size := range []int{1 << 20, 3 << 20, 16 << 20} {
		for _, c := range []struct {
			name string
			do   func(h *Heap, b []byte)
		}{
			{"Free", func(h *Heap, b []byte) { h.Free(b) }},
			{"Resize", func(h *Heap, b []byte) { h.Resize(b, 1500<<10) }},
		} {
			h := newHeap(t, Options{})
			b := alloc(t, h, 2<<20)
			c.do(h, b)
			if panicOf(func() { h.resizeLarge("Heap.Resize", b, size) }) == "" {
				t.Errorf("to %d bytes after %s: no panic", size, c.name)
			}
			h.check(t)
		}
	}
}

// While a block's pages are moved, a Free or Resize of the same block is refused, and
// the move ends well.
func TestMisuseOfABlockThatIsBeingMoved(t *testing.T) {
	for _, fails := range []bool{false, true} {
		h := newHeap(t, Options{})
		b := alloc(t, h, 1<<20)
		alloc(t, h, 40000) // so that it cannot grow in place
		fill(b, 1)
		refused := 0
		restore := vm.SetFault(func(op vm.Op) error {
			if op != vm.OpMove {
				return nil
			}
			for _, misuse := range []func(){
				func() { h.Free(b) },
				func() { h.Resize(b, 4<<20) },
				func() { h.Resize(b, 1<<19) },
			} {
				func() {
					defer func() {
						if recover() != nil {
							refused++
						}
					}()
					misuse()
				}()
			}
			if fails {
				return vm.ErrUnsupported
			}
			return nil
		})
		r, ok := h.Resize(b, 4<<20)
		restore()
		if !ok && !fails {
			t.Skip("pages are not moved here")
		}
		if refused != 3 || ok == fails {
			t.Errorf("the move fails %t: %d misuses were refused, want 3; resized %t", fails, refused, ok)
		}
		if ok {
			b = r[:1<<20]
		}
		for i, c := range b {
			if c != 1 {
				t.Fatalf("byte %d is %d", i, c)
			}
		}
		h.check(t)
		if fails {
			h.Free(b)
		}
	}
}
