// Resize: in place, and by moving pages.

package pages

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

// moved returns a block of 12 MiB that was moved there. It skips the test if pages cannot be
// moved.
func moved(t *testing.T, h *testHeap) []byte {
	t.Helper()
	b := alloc(t, h, copyBytes+1)
	alloc(t, h, 40000) // prevents growing in place
	fill(b, 1)
	r, ok := h.Resize(b, 12<<20)
	if !ok {
		t.Skip("pages are not moved here")
	}
	if addrOf(r) == addrOf(b) {
		t.Fatal("the block grew in place")
	}
	return r
}

// A large block grows over free pages behind it, into unused addresses, or by moving its pages.
// Above copyBytes it never grows by a copy on Linux.
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
		blockers = append(blockers, alloc(t, h, 50000)) // some of them are behind the block
		old := size
		size *= 2
		r, ok := h.Resize(b, size)
		if !ok {
			if runtime.GOOS == "linux" && !vm.GoBacked && old > copyBytes {
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

// A block of copyBytes is copied. A longer one is moved.
func TestShortBlockIsNotMoved(t *testing.T) {
	h := newHeap(t, Options{})
	h.Free(moved(t, h))
	for _, size := range []int{1 << 20, copyBytes, copyBytes + 1} {
		b := alloc(t, h, size)
		alloc(t, h, 40000) // prevents growing in place
		if _, ok := h.Resize(b, 2*size); ok != (size > copyBytes) {
			t.Errorf("a block of %d bytes is moved: %v", size, ok)
		}
	}
}

func TestMovedBlockKeepsItsAlignment(t *testing.T) {
	const align, pages = 1 << 20, 12 << 20 / PageBytes
	h := newHeap(t, Options{})
	b, err := h.Alloc(copyBytes+1, align, false)
	if err != nil {
		t.Fatal(err)
	}
	h.Free(alloc(t, h, 32<<20)) // a free run as the target of the move ...
	for h.pages.free.fit(pages) == nil || h.pages.free.fit(pages).Base%align == 0 {
		alloc(t, h, 40000) // ... that begins at no multiple of the alignment
	}
	alloc(t, h, 40000)
	r, ok := h.Resize(b, pages*PageBytes)
	if !ok {
		t.Skip("pages are not moved here")
	}
	if addrOf(r) == addrOf(b) || addrOf(r)%align != 0 {
		t.Errorf("a block at %#x, a multiple of %#x, was moved to %#x", addrOf(b), align, addrOf(r))
	}
}

// A move may split mappings, and their number is limited. The moved pages are mapped anew before
// they are reused, which merges the mappings.
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

// If the tables for a cut would exceed the limit, the block keeps its pages.
func TestCutThatTheLimitRefuses(t *testing.T) {
	h := newHeap(t, Options{MaxBytes: 64 << 20})
	b := alloc(t, h, 5*SegmentBytes)
	h.pages.MaxBytes = h.pages.committed
	r, ok := h.Resize(b, len(b)/2)
	if s := SpanAt(addrOf(b)); !ok || s.Bytes() != uintptr(len(b)) {
		t.Fatalf("Resize: %v, with %d bytes of pages", ok, s.Bytes())
	}
	h.check(t) // this finds lost metadata
	h.Free(r)
}

// Several goroutines may find a block live, and one claims it. Its span may describe another block
// by then.
func TestBlockIsClaimedOnce(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 100000)
	s, addr := SpanAt(addrOf(b)), addrOf(b)
	if s.Claim(addr+PageBytes, 100000) {
		t.Error("another block was claimed")
	}
	if !s.Claim(addr, 100000) || s.Claim(addr, 100000) {
		t.Error("the block was not claimed exactly once")
	}
	s.Unclaim(100000)
	h.Free(b)
}

// If another goroutine frees or resizes a block after the caller has looked, ResizeBlock changes
// nothing.
func TestResizeOfAChangedBlock(t *testing.T) {
	for _, size := range []uintptr{1 << 20, 3 << 20, 16 << 20} {
		for name, change := range map[string]func(h *testHeap, b []byte){
			"Free":   func(h *testHeap, b []byte) { h.Free(b) },
			"Resize": func(h *testHeap, b []byte) { h.Resize(b, 1500<<10) },
		} {
			h := newHeap(t, Options{})
			b := alloc(t, h, 2<<20)
			s := SpanAt(addrOf(b))
			change(h, b)
			if _, live := h.pages.ResizeBlock(s, addrOf(b), 2<<20, size); live {
				t.Errorf("to %d bytes after %s: the block is live", size, name)
			}
			h.check(t)
		}
	}
}

// payer pays everything, and calls onCharge at each charge.
type payer struct {
	limit    int
	onCharge func()
}

func (p payer) Charge(int) error         { p.onCharge(); return nil }
func (p payer) MayCharge(int, int) error { return nil }
func (p payer) Refund(int)               {}
func (p payer) Limit() int               { return p.limit }
func (p payer) MakeRoom(int) bool        { return false }

// While a block grows in place, no other goroutine can claim it.
func TestBlockThatGrowsIsClaimed(t *testing.T) {
	onCharge, tries := func() {}, 0
	h := newHeap(t, Options{Payer: payer{onCharge: func() { onCharge() }}})
	b := alloc(t, h, 100<<10)
	s := SpanAt(addrOf(b))
	onCharge = func() {
		if tries++; s.Claim(addrOf(b), uintptr(len(b))) {
			t.Error("the block is claimed, and grows")
		}
	}
	r, ok := h.Resize(b, 1<<20)
	onCharge = func() {}
	if !ok || tries == 0 {
		t.Fatalf("resized: %v; %d charges", ok, tries)
	}
	h.check(t)
	h.Free(r)
}

// The lower of two limits counts.
func TestPayersLimitBesideTheHeaps(t *testing.T) {
	for _, tt := range []struct{ max, payer, want int }{{0, 0, 0}, {1 << 20, 0, 1 << 20}, {0, 2 << 20, 2 << 20}, {1 << 20, 2 << 20, 1 << 20}, {3 << 20, 2 << 20, 2 << 20}} {
		h := newHeap(t, Options{MaxBytes: tt.max, Payer: payer{limit: tt.payer}})
		if got := h.pages.Limit(); got != uintptr(tt.want) {
			t.Errorf("limit is %d, want %d", got, tt.want)
		}
	}
}

// While a block's pages are moved, a Free or Resize of it is refused, and the move ends well.
func TestMisuseOfABlockThatIsBeingMoved(t *testing.T) {
	for _, fails := range []bool{false, true} {
		h := newHeap(t, Options{})
		b := alloc(t, h, copyBytes+1)
		alloc(t, h, 40000) // prevents growing in place
		fill(b, 1)
		refused := 0
		restore := vm.SetFault(func(op vm.Op) error {
			if op != vm.OpMove {
				return nil
			}
			for _, misuse := range []func(){func() { h.Free(b) }, func() { h.Resize(b, 12<<20) }, func() { h.Resize(b, 1<<19) }} {
				if panicOf(misuse) != "" {
					refused++
				}
			}
			if fails {
				return vm.ErrUnsupported
			}
			return nil
		})
		r, ok := h.Resize(b, 12<<20)
		restore()
		if !ok && !fails {
			t.Skip("pages are not moved here")
		}
		if refused != 3 || ok == fails {
			t.Errorf("the move fails %t: %d misuses were refused, want 3; resized %t", fails, refused, ok)
		}
		if ok {
			b = r[:len(b)]
		}
		if !allSet(b, 1) {
			t.Error("the block's bytes changed")
		}
		h.check(t)
	}
}
