// Limit: the memory that MaxBytes counts, and the unchanged state after a refusal.

package pages

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/freehold-go/freehold/internal/vm"
)

// The limit holds at every moment, with several goroutines, and the heap works again once memory
// has been freed.
func TestLimitIsNeverPassed(t *testing.T) {
	const limit = 24 << 20
	h := newHeap(t, Options{MaxBytes: limit})
	done := make(chan bool)
	var watch, runs sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if st := h.Stats(); st.Committed > limit {
				t.Errorf("committed is %d", st.Committed)
				return
			}
			runtime.Gosched()
		}
	})
	var refused sync.Map
	for g := range 4 {
		runs.Go(func() {
			var live [][]byte
			for i := range 3000 {
				size := []int{100, 3000, 40000, 900000}[(i+g)%4]
				b, err := h.Alloc(size, 8, false)
				if err != nil {
					if !errors.Is(err, ErrOutOfMemory) || !strings.Contains(err.Error(), "limit of") {
						t.Error(err)
					}
					refused.Store(g, true)
					for _, b := range live {
						h.Free(b)
					}
					live = nil
					continue
				}
				fill(b[:min(len(b), 100)], byte(g))
				live = append(live, b)
			}
			for _, b := range live {
				if !allSet(b[:min(len(b), 100)], byte(g)) {
					t.Error("a block changed")
				}
				h.Free(b)
			}
		})
	}
	runs.Wait()
	close(done)
	watch.Wait()
	if _, ok := refused.Load(0); !ok {
		t.Error("the limit was never reached")
	}
	h.check(t)
	b, err := h.Alloc(limit-4<<20, 8, false)
	if err != nil {
		t.Errorf("after all is freed: %v", err)
	}
	h.Free(b)
}

// A request that reaches the limit exactly is served. One more byte is refused.
func TestLimitIsExact(t *testing.T) {
	reached := false
	for limit := int(64<<10 + heldBytes + tableBytes); limit <= 256<<10; limit += PageBytes {
		h := newHeap(t, Options{MaxBytes: limit, WholePages: true})
		for {
			if _, err := h.Alloc(PageBytes, 1, false); err != nil {
				break
			}
		}
		st := h.Stats()
		if st.Committed > limit || st.Committed < limit-SlabBytes {
			t.Errorf("%d bytes of %d", st.Committed, limit)
		}
		reached = reached || st.Committed == limit
		h.Close()
	}
	if !reached {
		t.Error("no limit was reached")
	}
}

// OffHeap is the sum over all heaps. Other heaps may tick meanwhile, so the test repeats the
// operation: a charge that is not undone adds up.
func TestOffHeapReturnsToWhatItWas(t *testing.T) {
	const size, rounds, noise = 64 << 20, 10, 32 << 20
	before := committedByAll.Load()
	for range rounds {
		h := newHeap(t, Options{})
		large := alloc(t, h, size)
		for range 1000 {
			alloc(t, h, 100)
		}
		if grown := committedByAll.Load() - before; grown < size-noise || grown > size+noise {
			t.Fatalf("%d bytes more for a block of %d", grown, size)
		}
		h.Free(large)
		h.Trim()
		h.Close()
	}
	if grown := committedByAll.Load() - before; grown > noise || grown < -noise {
		t.Errorf("%d bytes more after Close", grown)
	}
	want := committedByAll.Load()
	if vm.GoBacked {
		want = 0
	}
	if got := OffHeap(); got-want > noise || want-got > noise {
		t.Errorf("OffHeap is %d, want about %d", got, want)
	}
}

// Each call that takes pages beyond the watermark calls the hook before it returns. Calls below
// do not.
func TestGrowthIsTold(t *testing.T) {
	if vm.GoBacked {
		t.Skip("off-heap memory is Go's own")
	}
	const noise = 64 << 20 // of heaps that earlier tests have left
	h := newHeap(t, Options{})
	told := 0
	OnGrowth(func() {
		told++
		SetWatermark(OffHeap() + noise)
		h.Free(alloc(t, h, 1<<20)) // would deadlock if a lock were held
	})
	defer SetWatermark(0)
	want := func(call string, n int) {
		t.Helper()
		if told != n {
			t.Errorf("after %s: told %d times, want %d", call, told, n)
		}
	}
	SetWatermark(OffHeap() + noise)
	b := alloc(t, h, 1<<20)
	want("a small block", 0)
	large := alloc(t, h, noise+1<<20)
	want("a large block", 1)
	if r, ok := h.Resize(large, 3*noise); ok {
		large = r
		want("a resize", 2)
	}
	h.Free(large)
	h.Free(b)
	SetWatermark(1)
	h.Free(alloc(t, h, 100))
	if told < 2 {
		t.Errorf("after a span: told %d times", told)
	}
	SetWatermark(0)
	told = 0
	h.Free(alloc(t, h, 2*noise))
	want("a large block without a watermark", 0)
}
