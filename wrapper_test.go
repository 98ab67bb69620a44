package freehold

import (
	"reflect"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"
	"unsafe"
)

// spy is an allocator that calls inside in each call, and always returns the same
// block.
type spy struct {
	block  []byte
	inside func()
	align  int // of the last block
}

func (s *spy) Alloc(size, align int) ([]byte, error) {
	s.inside()
	s.align = align
	return s.block[:size:size], nil
}

func (s *spy) Zeroed(size, align int) ([]byte, error)   { return s.Alloc(size, align) }
func (s *spy) Resize(b []byte, size int) ([]byte, bool) { s.inside(); return nil, false }
func (s *spy) Free(b []byte)                            { s.inside() }
func (s *spy) Owns(b []byte) bool                       { s.inside(); return true }
func (s *spy) GoodSize(size int) int                    { s.inside(); return size }
func newSpy(inside func()) *spy                         { return &spy{make([]byte, 1<<10), inside, 0} }

func mustBe(t *testing.T, got, want int, of string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %d, want %d", of, got, want)
	}
}

// Every call of the wrapped allocator is made under the lock.
func TestLockedHoldsItsLockInEachCall(t *testing.T) {
	var l *locked
	calls := 0
	l = NewLocked(newSpy(func() {
		calls++
		if l.mu.TryLock() {
			l.mu.Unlock()
			t.Errorf("call %d is made without the lock", calls)
		}
	})).(*locked)
	b, _ := l.Alloc(8, 8)
	l.Zeroed(8, 8)
	l.Resize(b, 9)
	l.Owns(b)
	l.GoodSize(8)
	l.Free(b)
	if calls != 6 {
		t.Errorf("%d calls, want 6", calls)
	}
}

// A block counts until the wrapped allocator has freed it, and a request counts
// before the wrapped allocator is called.
func TestWrappersCountWhileNextWorks(t *testing.T) {
	used, blocks := 0, 0
	var limit *Limit
	var counter *Tagged
	limit = NewLimit(newSpy(func() { used, blocks = limit.Used(), counter.Counts().Live }), 100)
	counter = NewTagged(limit, "")
	b, _ := counter.Alloc(40, 8)
	mustBe(t, used, 40, "bytes in Alloc")
	mustBe(t, blocks, 0, "blocks in Alloc")
	counter.Zeroed(20, 8)
	mustBe(t, used, 60, "bytes in Zeroed")
	counter.Resize(b, 70)
	mustBe(t, used, 90, "bytes in a Resize that grows")
	counter.Resize(b, 10)
	mustBe(t, used, 60, "bytes in a Resize that shrinks")
	counter.Free(b)
	mustBe(t, used, 60, "bytes in Free")
	mustBe(t, blocks, 2, "blocks in Free")
	mustBe(t, limit.Used(), 20, "bytes after Free")
}

// A limit is never passed, no count is lost, and requests that fit never fail because of others
// that do not. With more threads than processors, the system interrupts one between a load and a
// store.
func TestLimitLosesNoCount(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4 * runtime.NumCPU()))
	pairs := 100_000
	if testing.Short() {
		pairs = 10_000
	}
	workers := 4 * runtime.NumCPU()
	limit := NewLimit(newSpy(nil), 8*workers)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range pairs {
				if limit.charge(8*workers + 1) {
					t.Error("more than the limit fitted")
					return
				}
				if !limit.charge(8) {
					t.Error("a share of the limit did not fit")
					return
				}
				limit.refund("", 8)
			}
		})
	}
	wg.Wait()
	mustBe(t, limit.Used(), 0, "bytes when all are freed")
}

func TestGoodSizeIsNeverBelowTheSize(t *testing.T) {
	mustBe(t, GoodSize(low{}, 100), 100, "good size")
}

// low is an allocator whose good size is too low.
type low struct{ Allocator }

func (low) GoodSize(int) int { return 1 }

// Every typed function passes T's alignment to the allocator.
func TestTypedFunctionsAskForTheAlignment(t *testing.T) {
	next := newSpy(func() {})
	type pair struct{ a, b uint32 }
	Must(New[pair](next))
	mustBe(t, next.align, 4, "alignment of New")
	Must(MakeSlice[uint16](next, 3))
	mustBe(t, next.align, 2, "alignment of MakeSlice")
	s := Must(Clone(next, []uint64{1, 2}))
	mustBe(t, next.align, int(unsafe.Alignof(uint64(0))), "alignment of Clone")
	next.align = 0
	Must(Append(next, s, 3))
	mustBe(t, next.align, int(unsafe.Alignof(uint64(0))), "alignment of Append that copies")
	next.align = 0
	Must(Append(next, []uint32(nil), 1))
	mustBe(t, next.align, 4, "alignment of Append to nil")
	Must(Realloc(next, next.block[:8], 9, 64))
	mustBe(t, next.align, 64, "alignment of Realloc")
}

// Options reach internal/heap.
func TestHeapHasTheOptionsThatWereAskedFor(t *testing.T) {
	h := NewHeap(&HeapOptions{Name: "asked", MaxBytes: 1 << 20, Decay: time.Hour, WholePages: true, HugePages: true})
	defer h.Close()
	engine := reflect.ValueOf(&h.h).Elem().FieldByName("pages")
	if st := h.Stats(); st.Name != "asked" || st.MaxBytes != 1<<20 ||
		engine.FieldByName("decay").Int() != int64(time.Hour) || !engine.FieldByName("HugePages").Bool() || !engine.FieldByName("WholePages").Bool() {
		t.Errorf("%+v", st)
	}
}

// Beyond a number of tags, blocks count for a tag of all others.
func TestManyTags(t *testing.T) {
	tags.mu.Lock()
	was := tags.accounts
	tags.accounts = map[string]*account{}
	tags.mu.Unlock()
	defer func() {
		tags.mu.Lock()
		defer tags.mu.Unlock()
		tags.accounts = was
	}()
	next := newSpy(func() {})
	first := NewTagged(next, "0")
	for i := 1; i < 4095; i++ {
		NewTagged(next, strconv.Itoa(i))
	}
	late := []*Tagged{NewTagged(next, "late"), NewTagged(next, "later")}
	within := NewTagged(NewTagged(late[0], ""), "latest") // a block counts once
	for _, tagged := range []*Tagged{within, late[1], first, NewTagged(next, "0")} {
		Must(tagged.Alloc(10, 8))
	}
	mustBe(t, len(AllTags()), 4096, "tags")
	mustBe(t, first.Counts().Live, 2, "blocks of a tag that was there")
	mustBe(t, late[1].Counts().Live, 2, "blocks of other tags")
	if all := AllTags(); all[0].Tag != "(other)" || all[0].Live != 2 || late[1].Tag() != "later" {
		t.Errorf("%+v, %s", all[0], late[1].Tag())
	}
}
