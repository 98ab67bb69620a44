package heap

import (
	"fmt"
	"github.com/freehold-go/freehold/internal/pages"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"unsafe"
)

// sampleAt sets the rate for a test, and makes chance the same each time.
func sampleAt(t testing.TB, rate int) {
	was := SetSampleRate(rate)
	sampling.random.Store(1)
	t.Cleanup(func() { SetSampleRate(was) })
}

// usage returns what the samples say about the heap of that name.
func usage(name string) (u Usage) {
	for _, p := range Profile() {
		if p.Heap == name {
			u.AllocObjects += p.AllocObjects
			u.AllocBytes += p.AllocBytes
			u.FreeObjects += p.FreeObjects
			u.FreeBytes += p.FreeBytes
		}
	}
	return u
}

func wantUsage(t *testing.T, name string, allocs, allocBytes, frees, freeBytes int64) {
	t.Helper()
	u := usage(name)
	if got, want := [...]int64{u.AllocObjects, u.AllocBytes, u.FreeObjects, u.FreeBytes}, [...]int64{allocs, allocBytes, frees, freeBytes}; got != want {
		t.Errorf("%s: blocks and bytes allocated, freed: %d, want %d", name, got, want)
	}
}

// At rate 1 each block is counted, whichever path serves it.
func TestEveryBlockIsSampledAtRate1(t *testing.T) {
	sampleAt(t, 1)
	h := newHeap(t, Options{Name: nameOf(t)})
	o := newLocalCache(h)
	var blocks [][]byte
	bytes := int64(0)
	for i := range 3000 {
		size := 1 + i*37%5000
		if i%100 == 0 {
			size = 40000 + i
		}
		var b []byte
		var err error
		switch i % 3 {
		case 0:
			b, err = h.Alloc(size, 8, false)
		case 1:
			b, err = h.alloc(size, 64, true)
		default:
			b, err = o.Alloc(size, 8, true)
		}
		if err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, b)
		bytes += int64(size)
	}
	wantUsage(t, nameOf(t), 3000, bytes, 0, 0)
	h.check(t)
	h.Tick()
	h.Trim()
	h.check(t)
	for i, b := range blocks {
		switch i % 4 {
		case 0:
			h.Free(b)
		case 1:
			h.free(b)
		case 2:
			o.Free(b)
		default:
			h.FreePointer(unsafe.Pointer(&b[0]))
		}
	}
	wantUsage(t, nameOf(t), 3000, bytes, 3000, bytes)
	o.Close()
	h.check(t)
	if n := h.countRecords(); n != 0 {
		t.Errorf("%d records of no block", n)
	}
}

// Resize counts as a Free and an Alloc, in place, moved, and of large blocks. One that
// fails changes nothing.
func TestResizeOfASampledBlock(t *testing.T) {
	sampleAt(t, 1)
	tests := []struct{ from, to int }{
		{100, 112}, {112, 100}, // within the class
		{100, 10}, {100, 113}, // another class
		{100000, 50000}, {50000, 100000}, {100000, 100001}, {2 << 20, 9 << 20}, {3 << 20, 100},
	}
	for _, tt := range tests {
		name := fmt.Sprint(nameOf(t), tt)
		h := newHeap(t, Options{Name: name})
		b := alloc(t, h, tt.from)
		keep := alloc(t, h, 40000) // so that a large block has a neighbour
		from, to := int64(tt.from), int64(tt.to)
		r, ok := h.Resize(b, tt.to)
		if ok {
			wantUsage(t, name, 3, from+40000+to, 1, from)
		} else {
			wantUsage(t, name, 2, from+40000, 0, 0)
			r = b
		}
		h.check(t)
		h.Free(r)
		h.Free(keep)
		h.check(t)
		if u := usage(name); u.FreeObjects != u.AllocObjects || u.FreeBytes != u.AllocBytes {
			t.Errorf("%v: all is free, and the samples say %+v", tt, u)
		}
		if n := h.countRecords(); n != 0 {
			t.Errorf("%v: %d records of no block", tt, n)
		}
	}
}

// A moved block is sampled where it is now.
func TestReallocPointerOfASampledBlock(t *testing.T) {
	sampleAt(t, 1)
	h := newHeap(t, Options{Name: nameOf(t)})
	p := h.Malloc(100)
	if n := h.UsableSize(p); n < 100 {
		t.Errorf("%d bytes are usable of 100", n)
	}
	p = h.ReallocPointer(p, 5000)
	p = h.ReallocPointer(p, 4990)
	wantUsage(t, nameOf(t), 3, 100+5000+4990, 2, 5100)
	h.FreePointer(p)
	wantUsage(t, nameOf(t), 3, 100+5000+4990, 3, 100+5000+4990)
}

// What is wrong with a slice of a sampled block is found and named as for any other, and
// the block stays sampled.
func TestMisuseOfSampledBlocks(t *testing.T) {
	sampleAt(t, 1)
	for _, size := range []int{100, 100000} {
		h := newHeap(t, Options{Name: fmt.Sprint(nameOf(t), size)})
		other := newHeap(t, Options{})
		alloc(t, other, 50)
		o := newLocalCache(h)
		b := alloc(t, h, size)
		part := fmt.Sprintf("it has %d bytes, the block %d", size-1, size)
		for want, calls := range map[string][]func(){
			part:                          {func() { h.Free(b[:size-1]) }, func() { o.Free(b[:size-1]) }, func() { h.Resize(b[:size-1], 10) }},
			"points 8 bytes into a block": {func() { h.Free(b[8:]) }, func() { h.FreePointer(unsafe.Pointer(&b[8])) }, func() { h.UsableSize(unsafe.Pointer(&b[8])) }},
			"belongs to another heap":     {func() { other.Free(b) }, func() { other.Resize(b, 5) }},
		} {
			for _, call := range calls {
				if got := panicOf(call); !strings.Contains(got, want) {
					t.Errorf("panic %q, want %q", got, want)
				}
			}
		}
		h.check(t)
		wantUsage(t, h.pages.Name, 1, int64(size), 0, 0)
		o.Free(b)
		for _, call := range []func(){func() { h.Free(b) }, func() { o.Free(b) }, func() { h.Resize(b, 10) }, func() { h.FreePointer(unsafe.Pointer(&b[0])) }} {
			if got := panicOf(call); !strings.Contains(got, "double free") {
				t.Errorf("panic %q, want a double free", got)
			}
		}
		o.Close()
		wantUsage(t, h.pages.Name, 1, int64(size), 1, int64(size))
	}
}

// A closed heap has nothing in use, and another may have its addresses.
func TestCloseEndsSamples(t *testing.T) {
	sampleAt(t, 1)
	h := makeHeap(Options{Name: nameOf(t)})
	for i := range 1000 {
		alloc(t, h, 1+i*50)
	}
	h.Close()
	u := usage(nameOf(t))
	if u.AllocObjects != 1000 || u.FreeObjects != 1000 || u.FreeBytes != u.AllocBytes {
		t.Errorf("%+v", u)
	}
	again := newHeap(t, Options{Name: nameOf(t) + " again"})
	for i := range 1000 {
		again.Free(alloc(t, again, 1+i*50))
	}
	again.check(t)
}

// Where there is no memory for a record, the block is there and not sampled.
func TestNoMemoryForARecord(t *testing.T) {
	sampleAt(t, 1)
	h := newHeap(t, Options{Name: nameOf(t)})
	alloc(t, h, 64)
	was := samples.heap
	defer func() {
		samples.mu.Lock()
		defer samples.mu.Unlock()
		samples.heap = was
	}()
	samples.mu.Lock()
	samples.heap = makeHeap(Options{MaxBytes: 4096, Unsampled: true})
	samples.mu.Unlock()
	b := alloc(t, h, 64)
	wantUsage(t, nameOf(t), 1, 64, 0, 0)
	h.Free(b)
	h.check(t)
}

// Each record is found among many.
func TestManyRecords(t *testing.T) {
	sampleAt(t, 1)
	h := newHeap(t, Options{Name: nameOf(t)})
	r := rand.New(rand.NewPCG(1, 1))
	var live [][]byte
	for range 20000 {
		if len(live) > 0 && r.IntN(3) == 0 {
			j := r.IntN(len(live))
			h.Free(live[j])
			live[j] = live[len(live)-1]
			live = live[:len(live)-1]
		} else {
			live = append(live, alloc(t, h, 1+r.IntN(200)))
		}
	}
	h.check(t)
	if n := h.countRecords(); n != len(live) {
		t.Errorf("%d records of %d blocks", n, len(live))
	}
	for _, b := range live {
		h.Free(b)
	}
	h.check(t)
}

//go:noinline
func siteA(t *testing.T, h *Heap) []byte { return alloc(t, h, 64) }

//go:noinline
func siteB(t *testing.T, h *Heap) []byte { return alloc(t, h, 64) }

// Blocks are counted for the function that allocated them.
func TestStackOfASample(t *testing.T) {
	sampleAt(t, 1)
	h := newHeap(t, Options{Name: nameOf(t)})
	for range 100 {
		siteA(t, h)
		siteB(t, h)
		siteB(t, h)
	}
	count := map[string]int64{}
	for _, u := range Profile() {
		if u.Heap != nameOf(t) {
			continue
		}
		frames := runtime.CallersFrames(u.Stack)
		for {
			f, more := frames.Next()
			if i := strings.LastIndex(f.Function, ".site"); i >= 0 {
				count[f.Function[i+1:]] += u.AllocObjects
			}
			if !more {
				break
			}
		}
	}
	if len(count) != 2 || count["siteA"] != 100 || count["siteB"] != 200 {
		t.Errorf("%v", count)
	}
}

// Heaps of one name are counted together, and those for whose name there is no room as
// others.
func TestLabels(t *testing.T) {
	sampleAt(t, 1)
	for range 2 {
		h := newHeap(t, Options{Name: nameOf(t)})
		alloc(t, h, 50)
	}
	wantUsage(t, nameOf(t), 2, 100, 0, 0)

	samples.mu.Lock()
	labels, labelOf := samples.labels, samples.labelOf
	samples.labels = make([]label, maxLabels)
	copy(samples.labels, labels)
	samples.labelOf = map[label]uint32{}
	samples.mu.Unlock()
	defer func() { samples.labels, samples.labelOf = labels, labelOf }()
	others := usage(noLabel.heap).AllocObjects
	h := newHeap(t, Options{Name: nameOf(t) + " late"})
	alloc(t, h, 50)
	if n := usage(noLabel.heap).AllocObjects - others; n != 1 {
		t.Errorf("%d blocks of others, want 1", n)
	}
}

// runs counts the runs of each test. The counts of a name go on when its heap is closed.
var runs = map[string]int{}

// nameOf returns a name for the heaps of this run of a test.
func nameOf(t *testing.T) string {
	name, n := t.Name(), runs[t.Name()]
	t.Cleanup(func() { runs[name] = n + 1 })
	return fmt.Sprint(name, " ", n, " ")
}

// No size is taken for the status of a sampled block, whose low 16 bits some sizes have.
func TestSizesThatEndLikeTheStatusOfASample(t *testing.T) {
	for _, size := range []int{int(sampled), 1<<16 + int(sampled)} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			sampleAt(t, 1)
			h := newHeap(t, Options{})
			b := alloc(t, h, size)
			SetSampleRate(0)
			b, ok := h.Resize(b, size)
			if s := spanAt(addrOf(b)); !ok || s.sampled {
				t.Errorf("resized %v, sampled %v", ok, s.sampled)
			}
			h.check(t)
			h.Free(b)
		})
		t.Run(fmt.Sprint(size, " guarded"), func(t *testing.T) {
			guardAt(t, 1, 0)
			sampleAt(t, 1)
			h := newHeap(t, Options{})
			b := alloc(t, h, size)
			s := spanAt(addrOf(b))
			if s.Kind != pages.GuardRun || !s.sampled {
				t.Fatalf("span %+v", *s)
			}
			h.Free(b)
			if s.sampled {
				t.Error("a free block is sampled")
			}
			h.check(t)
		})
	}
}
