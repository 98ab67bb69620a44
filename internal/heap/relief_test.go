// Reliefs: giving memory back while a small heap grows.

package heap

import (
	"testing"
	"time"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/small"
	"github.com/freehold-go/freehold/internal/test/await"
)

// grow allocates the bytes in blocks of a size.
func grow(t *testing.T, h *Heap, bytes, size int) (live [][]byte) {
	for range bytes / size {
		live = append(live, alloc(t, h, size))
	}
	return live
}

// A small heap whose sizes change with its phases gives back what earlier phases have left in
// caches. It does not if its memory stays until Trim.
func TestGrowingHeapDrainsItsCaches(t *testing.T) {
	most := func(decay time.Duration) (most int) {
		h := newHeap(t, Options{Decay: decay})
		p := newProcessor(h)
		defer p.Close()
		for size := 64; size <= small.MaxSize; size += size / 8 {
			var live [][]byte
			for range 2 << 20 / size {
				live = append(live, allocOn(t, p, size, 8, false))
			}
			most = max(most, h.Stats().Committed)
			for _, b := range live {
				p.Free(b)
			}
		}
		return most
	}
	if relieved, kept := most(never), most(-1); relieved > kept*3/4 {
		t.Errorf("%d bytes committed at most, and %d if memory is kept", relieved, kept)
	}
}

// A heap that needs longer runs than it has purges short ones. It purges twice the bytes by which
// its live bytes pass the most that were live before, and a little if they do not pass it.
func TestGrowingHeapPurgesFreeRuns(t *testing.T) {
	const size = maxKeptPages*pages.PageBytes + pages.PageBytes // no cache keeps it
	for _, tt := range []struct {
		name       string
		grow       int // bytes beyond the most live ones
		from, upTo int // bytes purged
	}{
		{"none grown", 0, leastRelief / 2, leastRelief},
		{"grown", 2 * size, 4 * size, 4*size + leastRelief},
		{"more grown than free", 24 << 20, 8 << 20, 16 << 20},
	} {
		h := newHeap(t, Options{Decay: never})
		live := grow(t, h, 32<<20, size)
		for i := 0; i < len(live); i += 2 {
			h.Free(live[i])
		}
		h.mostLive = 1 << 30
		for range 2 * reliefCalls { // of which the last are since the last relief
			h.Free(alloc(t, h, size))
		}
		h.mostLive = h.count().live + 4*size - tt.grow
		before := h.Stats().PurgedBytes
		alloc(t, h, 4*size)
		if purged := int(h.Stats().PurgedBytes - before); purged < tt.from || purged > tt.upTo {
			t.Errorf("%s: %d bytes were purged, want %d to %d", tt.name, purged, tt.from, tt.upTo)
		}
	}
}

// A heap that grows within reliefCalls of its last relief counts no blocks: it waits for neither a
// drain nor a depot. Its watermark stays passed, so the next relief is not late.
func TestGrowthCountsNoBlocksBetweenReliefs(t *testing.T) {
	h := newHeap(t, Options{Decay: never})
	h.caches.counting.Lock()
	done := make(chan bool, 1)
	go func() { alloc(t, h, 2<<20); done <- true }()
	if await.Lock("(*Heap).relieve", done) {
		t.Error("a growth soon after the last relief waits for a count")
	}
	h.caches.counting.Unlock()
	<-done
	if !h.pages.Passed() {
		t.Error("the watermark was raised")
	}
	for range reliefCalls {
		alloc(t, h, 2<<20)
	}
	if h.pages.Passed() {
		t.Error("the watermark was not raised")
	}
}

// A request does not wait for another goroutine that gives memory back. The next one relieves.
func TestReliefWaitsForNobody(t *testing.T) {
	h := newHeap(t, Options{Decay: never})
	h.pages.Scavenging.Lock()
	for range reliefCalls {
		alloc(t, h, 512<<10)
	}
	passed := h.pages.Passed()
	h.pages.Scavenging.Unlock()
	if !passed {
		t.Error("the watermark is not passed")
	}
	if alloc(t, h, 512<<10); h.pages.Passed() {
		t.Error("the watermark was not raised")
	}
}

// A relief stops no busy processor: each flushes its own cache. It stops the world for the cache of
// an idle one.
func TestReliefStopsIdleProcessorsOnly(t *testing.T) {
	for _, idle := range []bool{false, true} {
		h := newHeap(t, Options{Decay: never})
		all := newProcessors(h, 2)
		for _, p := range all {
			for size := 256; size <= small.MaxSize; size += size / 2 {
				for range 2 { // live, so that the spans stay
					allocOn(t, p, size, 8, false)
				}
				p.Free(allocOn(t, p, size, 8, false))
			}
		}
		stops := 0
		restore := pin.OnWait(func(p *pin.Holders) {
			if p == &h.caches.Holders {
				stops++
			}
		})
		hoard := h.count().cached
		for h.count().live < 16<<20 && h.pages.CommittedNow() < 32<<20 {
			allocOn(t, all[0], 8000, 8, false)
			if !idle {
				allocOn(t, all[1], 8000, 8, false)
			}
		}
		restore()
		if n := h.count(); (stops > 0) != idle || hoard <= minHoard || n.cached > minHoard/4 {
			t.Errorf("idle: %v: %d stops, %d bytes in caches, and %d after growth", idle, stops, hoard, n.cached)
		}
		for _, p := range all {
			p.Close()
		}
	}
}

// hoard leaves bytes in the kept runs of p's cache, if it may keep them.
func (p *processor) hoard(t *testing.T, bytes int) {
	t.Helper()
	const size = 64 << 10
	var all [][]byte
	p.Free(allocOn(t, p, 100, 1, false)) // makes the cache
	for range bytes / size {
		all = append(all, allocOn(t, p, size, 1, false))
	}
	for _, b := range all {
		p.Free(b)
	}
	if n := p.kept().Bytes; n != uintptr(bytes) {
		t.Fatalf("%d bytes are kept, want %d", n, bytes)
	}
}

// A relief of a heap whose caches hold much asks the processors, and does the rest askCalls slow
// calls later. Another relief begins reliefCalls slow calls after that.
func TestStepsOfARelief(t *testing.T) {
	h := newHeap(t, Options{Decay: never})
	all := newProcessors(h, 2)
	hoard := func() {
		all[0].hoard(t, minKeptBytes)
		var live [][]byte // whose magazines leave empty slabs
		for range 256 << 10 / 64 {
			live = append(live, allocOn(t, all[0], 64, 1, false))
		}
		for _, b := range live {
			all[0].Free(b)
		}
	}
	var live []byte
	hoards := func() { hoard(); all[1].hoard(t, minKeptBytes) }
	drains, asks, mostLive := 0, uint32(0), 0
	defer pin.OnWait(func(p *pin.Holders) {
		if p == &h.caches.Holders {
			drains++
		}
	})()
	for i, tt := range []struct {
		ticks  int
		before func() // no relief comes meanwhile
		calls  uint64 // slow calls since the last step
		asks   uint32
		drains int
		raises bool
	}{
		{before: func() { live = alloc(t, h, 2<<20); hoards() }, calls: reliefCalls - 1},
		{calls: reliefCalls, asks: 1},
		{calls: askCalls - 1},
		{calls: askCalls, drains: 1, raises: true}, // all[1] has not flushed its cache
		{calls: askCalls},
		{calls: reliefCalls - 1},
		{calls: reliefCalls, raises: true}, // no hoard
		{before: hoards, calls: reliefCalls, asks: 1},
		// all[1] flushes:
		{before: func() { allocOn(t, all[1], 300, 1, false) }, calls: askCalls, raises: true},
		{before: hoards, calls: reliefCalls, asks: 1},
		{ticks: 1, before: hoards, calls: reliefCalls, asks: 1}, // the tick ended the relief
		// There are no others to ask:
		{ticks: 1, before: func() { all[1].Close(); hoard() }, calls: reliefCalls, asks: 1, raises: true},
		{before: func() { h.Free(live) }, calls: reliefCalls, raises: true},
		{ticks: 1, calls: reliefCalls, raises: true},
	} {
		for range tt.ticks {
			h.Tick()
			mostLive -= mostLive / pages.StepShare
		}
		h.pages.Scavenging.Lock()
		if tt.before != nil {
			tt.before()
		}
		h.pages.Scavenging.Unlock()
		h.pages.RaiseWatermark(0)
		h.relieved = h.slowCalls() - tt.calls
		metadata := h.pages.Figures().Metadata
		drains, asks = 0, h.caches.asked.Load()
		all[0].slow(h.relieve)
		asked := h.caches.asked.Load() - asks
		if asked != tt.asks || drains != tt.drains || h.pages.Passed() == tt.raises {
			t.Errorf("step %d: asks %d times, drains %d times, raises the watermark: %v; want %+v", i, asked, drains, !h.pages.Passed(), tt)
		}
		if n := h.pages.Figures().Metadata; n < metadata {
			t.Errorf("step %d: %d bytes of metadata were freed", i, metadata-n)
		}
		if tt.raises {
			mostLive = max(mostLive, h.count().live)
		}
		if h.mostLive != mostLive {
			t.Errorf("step %d: at most %d bytes were live, noted are %d", i, mostLive, h.mostLive)
		}
	}
	h.Close()
	h.relieved = h.slowCalls() - reliefCalls
	if h.relieve(); h.count() != (counts{}) || h.caches.exist() {
		t.Error("a closed heap has blocks or caches after a relief")
	}
}

// The caches of a small heap hold much if that is more than a part of the live bytes.
func TestWhichHoardsAReliefFlushes(t *testing.T) {
	for _, tt := range []struct {
		live int
		want uint32
	}{{12 << 20, 1}, {20 << 20, 0}} { // beside a hoard of 1 MiB
		h := newHeap(t, Options{Decay: never})
		grow(t, h, tt.live, 2<<20)
		all := newProcessors(h, 2)
		for _, p := range all {
			p.hoard(t, minKeptBytes)
		}
		h.relieved = h.slowCalls() - reliefCalls
		before := h.caches.asked.Load()
		all[0].slow(h.relieve)
		if got := h.caches.asked.Load() - before; got != tt.want {
			t.Errorf("%d bytes are live: asks %d times, want %d", tt.live, got, tt.want)
		}
	}
}
