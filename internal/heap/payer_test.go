// Payers: charges, refunds, and refusals, which change nothing.

package heap

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/freehold-go/freehold/internal/pages"
)

// testPayer pays up to max, and fails the charge that fails counts down to.
type testPayer struct {
	charged, max int
	charges      int
	fails        int
	makeRoom     func(bytes int) bool
	onCharge     func()
}

var errRefused = fmt.Errorf("%w: refused", pages.ErrOutOfMemory)

func (p *testPayer) Charge(n int) error {
	p.charges++
	if p.fails--; p.fails == 0 || p.MayCharge(n, 0) != nil {
		return errRefused
	}
	p.charged += n
	return nil
}

func (p *testPayer) MayCharge(n, slack int) error {
	if n+slack > p.max-p.charged {
		return errRefused
	}
	return nil
}

func (p *testPayer) Refund(n int) { p.charged -= n }
func (p *testPayer) Limit() int   { return p.max }
func (p *testPayer) MakeRoom(n int) bool {
	return p.makeRoom != nil && p.makeRoom(n)
}

// check verifies h, and that its payer is charged its committed bytes.
func (p *testPayer) check(t *testing.T, h *Heap) {
	t.Helper()
	h.check(t)
	if st := h.Stats(); st.Committed != p.charged || st.MaxBytes != p.max {
		t.Errorf("committed %d of %d, charged %d of %d", st.Committed, st.MaxBytes, p.charged, p.max)
	}
}

// A payer is charged the committed bytes after each call. Whichever charge it refuses, the call
// fails or continues with less.
func TestPayerIsChargedWhatIsCommitted(t *testing.T) {
	for fails := range 40 { // 0 is none
		p := &testPayer{max: math.MaxInt, fails: fails}
		h := newHeap(t, Options{Payer: p, Decay: never})
		var live [][]byte
		for _, size := range []int{16, 40000, 3000, 3 << 20, 100000, 600000, 20000, 16} {
			b, err := h.Alloc(size, 8, false)
			if err != nil {
				if !errors.Is(err, errRefused) {
					t.Fatal(err)
				}
				continue
			}
			p.check(t, h)
			if r, ok := h.Resize(b, 2*size); ok {
				b = r
			}
			p.check(t, h)
			if size == 40000 {
				h.Free(b)
				p.check(t, h)
				continue
			}
			live = append(live, b)
		}
		for i, b := range live {
			h.Free(b)
			if i == 3 {
				h.Trim()
			}
			p.check(t, h)
		}
		alloc(t, h, 100)
		alloc(t, h, 100000)
		h.Close()
		if p.charged != 0 {
			t.Errorf("charge %d fails: %d charged after Close", fails, p.charged)
		}
	}
}

// Free pages count as room for a block that none of them can hold. So a purge is enough for it,
// and the caches are not drained.
func TestFreePagesAreRoomForALargerBlock(t *testing.T) {
	p := &testPayer{max: 16 << 20}
	h := newHeap(t, Options{Payer: p, Decay: never})
	h.Free(alloc(t, h, 100)) // what a drain would look for
	b := alloc(t, h, 10<<20)
	alloc(t, h, 40000) // keeps the pages behind b from b
	h.Free(b)
	drained := h.caches.drainedAt.Load()
	alloc(t, h, 12<<20)
	if h.caches.drainedAt.Load() != drained {
		t.Error("the caches were drained")
	}
	p.check(t, h)
}

// Spans leave memory for metadata, up to a MiB, and large blocks take it.
func TestSpansLeaveSlack(t *testing.T) {
	for _, tt := range []struct{ limit, slack int }{{8 << 20, 512 << 10}, {64 << 20, 1 << 20}} {
		p := &testPayer{max: tt.limit}
		h := newHeap(t, Options{Payer: p, Decay: never})
		for {
			if _, err := h.Alloc(1000, 8, false); err != nil {
				break
			}
		}
		if left := tt.limit - p.charged; left < tt.slack-64<<10 || left > tt.slack+64<<10 {
			t.Errorf("%d left of %d, want about %d", left, tt.limit, tt.slack)
		}
		alloc(t, h, tt.slack/2)
		p.check(t, h)
		h.Close()
	}
}

func TestPayerMakesRoom(t *testing.T) {
	p := &testPayer{max: 1 << 20}
	h := newHeap(t, Options{Payer: p, Decay: never})
	asked := 0
	p.makeRoom = func(n int) bool {
		if asked = n; n > 8<<20 {
			return false
		}
		p.max += n
		return true
	}
	for _, size := range []int{2 << 20, 100} {
		asked = 0
		alloc(t, h, size)
		p.max = p.charged
		if size > 100 && (asked < size || asked > size+1<<20) {
			t.Errorf("asked for %d, for a block of %d", asked, size)
		}
	}
	if _, err := h.Alloc(9<<20, 8, false); !errors.Is(err, errRefused) || asked < 9<<20 {
		t.Errorf("%v, asked for %d", err, asked)
	}
	p.check(t, h)
	p.max = 0
	p.makeRoom = func(int) bool { t.Error("asked though nothing was refused"); return false }
	p.max = math.MaxInt
	alloc(t, h, 1<<20)
	if err := h.withReclaim(1, false, func() error { return pages.ErrClosed }); err != pages.ErrClosed {
		t.Error(err)
	}
	h.Close()
	if _, err := h.pages.AllocBlock(1, 8, false); err != pages.ErrClosed {
		t.Error(err)
	}
}

// A purge for another heap gives back about the bytes that it needs, and a page for a few bytes.
func TestPurgeGivesBackWhatIsNeeded(t *testing.T) {
	h := newHeap(t, Options{Decay: never})
	var live [][]byte
	for range 16 {
		live = append(live, alloc(t, h, 1<<20))
	}
	for i := 0; i < len(live); i += 2 {
		h.Free(live[i])
	}
	for _, tt := range []struct{ n, least, most int }{{1, 1, 2 << 20}, {2 << 20, 2 << 20, 4 << 20}} {
		before := h.Stats().Committed
		h.Purge(tt.n)
		if given := before - h.Stats().Committed; given < tt.least || given > tt.most {
			t.Errorf("Purge of %d has given back %d", tt.n, given)
		}
	}
}

func TestTrimSpare(t *testing.T) {
	h := newHeap(t, Options{Decay: never})
	b := alloc(t, h, 40000)
	drains := h.caches.drainedAt.Load()
	h.TrimSpare()
	if h.caches.drainedAt.Load() != drains {
		t.Error("trimmed with nothing to give back")
	}
	h.Free(b)
	h.TrimSpare()
	if st := h.Stats(); st.Committed != st.Metadata {
		t.Errorf("%+v", st)
	}
	h.Close()
	h.TrimSpare()
	if h.tryTrim() {
		t.Error("a closed heap was trimmed")
	}
}

func TestEachPayer(t *testing.T) {
	one, two := &testPayer{}, &testPayer{}
	h := newHeap(t, Options{Payer: one})
	newHeap(t, Options{Payer: two})
	newHeap(t, Options{})
	want := map[pages.Payer]bool{one: true, two: true}
	EachPayer(func(p pages.Payer) {
		if p == pages.Payer(one) {
			h.Close() // no lock is held
		}
		delete(want, p)
	})
	if len(want) != 0 {
		t.Errorf("without %v", want)
	}
	EachPayer(func(p pages.Payer) {
		if p == pages.Payer(one) {
			t.Error("the payer of a closed heap")
		}
	})
}
