// Holes: the memory of free blocks inside spans.

package heap

import (
	"slices"
	"testing"
	"time"

	"github.com/freehold-go/freehold/internal/test/await"
	"github.com/freehold-go/freehold/internal/vm"
)

func TestHolesAreMadeOnce(t *testing.T) {
	if !vm.HolesReadZero {
		t.Skip("this system has no holes")
	}
	h := newHeap(t, Options{})
	var live [][]byte
	for range 2000 {
		live = append(live, alloc(t, h, 1000))
	}
	for i, b := range live {
		if i%50 > 0 {
			h.Free(b)
		}
	}
	if calls := callsOf(h.Trim); calls[vm.OpDecommit] == 0 {
		t.Fatal("no holes were made")
	}
	if calls := callsOf(h.Trim); calls[vm.OpDecommit] != 0 {
		t.Errorf("%d system calls for holes that are there", calls[vm.OpDecommit])
	}
}

func TestHolesGrowWithWhatIsFreed(t *testing.T) {
	if !vm.HolesReadZero {
		t.Skip("this system has no holes")
	}
	h := newHeap(t, Options{})
	const size = 4096
	var live [][]byte
	for range classes[classFor(size, 1)].blocks {
		live = append(live, alloc(t, h, size))
	}
	holes := 0
	for range 2 {
		for _, b := range live[:2] {
			h.Free(b)
		}
		live = live[2:]
		h.Trim()
		now := h.central[classFor(size, 1)].holes
		if now <= holes {
			t.Errorf("holes of %d bytes, and %d after more was freed", holes, now)
		}
		holes = now
	}
	for _, b := range live {
		h.Free(b)
	}
}

// Holes do not split huge pages.
func TestHolesSplitNoHugePages(t *testing.T) {
	h := newHeap(t, Options{HugePages: true})
	var live [][]byte
	for range classes[classFor(4096, 1)].blocks {
		live = append(live, alloc(t, h, 4096))
	}
	for _, b := range live[:2] {
		h.Free(b)
	}
	h.Trim()
	if holes := h.central[classFor(4096, 1)].holes; holes != 0 {
		t.Errorf("holes of %d bytes", holes)
	}
}

// A span that is freed while holes are made is not looked at: a Cache with
// the last blocks of the spans that come next is closed meanwhile.
func TestHolesStopWhereASpanWasFreed(t *testing.T) {
	if !vm.HolesReadZero {
		t.Skip("this system has no holes")
	}
	h := newHeap(t, Options{})
	const size = 4096
	last := map[*span][]byte{} // a block of each span
	var rest [][]byte
	for len(last) < 4*holeBatch {
		b := alloc(t, h, size)
		if s := spanAt(addrOf(b)); last[s] == nil {
			last[s] = b
		} else {
			rest = append(rest, b)
		}
	}
	for _, b := range rest {
		h.Free(b)
	}
	h.pages.Scavenging.Lock()
	h.drain()
	h.pages.Scavenging.Unlock()
	class, _ := entryOf(rest[0])
	c := &h.central[class]
	o := newProcessor(h)
	// The lock is let go of before the first of these, and Go's mutex favours one
	// who has waited from the second time on.
	var next []*span
	n := 0
	for at := c.partial.Head; at != 0; at = spanPtr(at).Next {
		if n++; n > 2*holeBatch && n <= 2*holeBatch+int(classes[class].batch) {
			next = append(next, spanPtr(at))
		}
	}
	for _, s := range slices.Backward(next) { // the first that comes home stays, empty
		o.Free(last[s])
		delete(last, s)
	}
	calls, done := 0, make(chan bool, 1)
	restore := vm.SetFault(func(op vm.Op) error {
		if op == vm.OpDecommit {
			if calls++; calls == 1 {
				go func() { o.Close(); done <- true }()
			}
			if calls == 1 || calls == holeBatch+holeBatch/2 {
				await.Lock("(*processor).Close", done)
			}
			if calls == 1 {
				time.Sleep(2 * time.Millisecond) // at least: the mutex favours none who waited for less than one
			}
		}
		return nil
	})
	h.pages.Scavenging.Lock()
	c.punch(h)
	h.pages.Scavenging.Unlock()
	restore()
	<-done
	h.check(t)
	for _, b := range last {
		h.Free(b)
	}
	h.Trim()
	if st := h.Stats(); st.Blocks != 0 || st.Active != 0 {
		t.Errorf("%+v", st)
	}
}

// A hole in a span that was given back reads zero or is cleared.
func TestZeroedAfterHoles(t *testing.T) {
	if !vm.HolesReadZero {
		t.Skip("this system has no holes")
	}
	h := newHeap(t, Options{})
	var live [][]byte
	for range 2000 {
		b := alloc(t, h, 1000)
		fill(b, 0xA5)
		live = append(live, b)
	}
	var kept [][]byte
	for i, b := range live {
		if i%50 == 0 {
			kept = append(kept, b)
		} else {
			h.Free(b)
		}
	}
	before := h.Stats()
	h.Trim()
	h.check(t)
	after := h.Stats()
	if after.Resident >= before.Resident/2 {
		t.Errorf("resident went from %d to %d with 1 block in 50 left", before.Resident, after.Resident)
	}
	for _, b := range kept {
		if !allSet(b, 0xA5) {
			t.Fatal("a survivor changed")
		}
	}
	for range 1900 {
		b, _ := h.Alloc(1000, 1, true)
		if !allSet(b, 0) {
			t.Fatal("not zero")
		}
		fill(b, 1)
	}
	for _, b := range kept {
		if !allSet(b, 0xA5) {
			t.Fatal("a survivor changed")
		}
	}
	h.check(t)
}

// Holes are made again in a span from which blocks were allocated. Stats counts them as
// given back.
func TestHolesAreMadeAgainAfterACarve(t *testing.T) {
	if !vm.HolesReadZero {
		t.Skip("this system has no holes")
	}
	h := newHeap(t, Options{})
	const size = 3840 // a span has more than two batches
	class := classFor(size, 1)
	c := &h.central[class]
	alloc(t, h, size)
	h.Trim()
	if c.holes == 0 || h.Stats().PurgedBytes < uint64(c.holes) {
		t.Fatalf("holes of %d bytes, %d given back", c.holes, h.Stats().PurgedBytes)
	}
	for range classes[class].batch { // so that Trim finds none in a cache
		alloc(t, h, size)
	}
	if c.spans != 1 || c.partial.Head == 0 || c.holes != 0 {
		t.Fatalf("%d spans with holes of %d bytes", c.spans, c.holes)
	}
	if h.Trim(); c.holes == 0 {
		t.Error("no holes around the blocks")
	}
	h.check(t)
}

// A punch ends where a block moves or a span is freed, and the class is not at rest then.
func TestPunchThatWasDisturbedIsNoRest(t *testing.T) {
	if !vm.HolesReadZero {
		t.Skip("this system has no holes")
	}
	for name, disturb := range map[string]func(c *central, last bool){
		"nothing":                func(*central, bool) {},
		"a block moved":          func(c *central, _ bool) { c.used = true },
		"a block moved, at last": func(c *central, last bool) { c.used = last },
		"a span was freed":       func(c *central, _ bool) { c.released++ },
	} {
		h := newHeap(t, Options{})
		const size = 30000
		c := &h.central[classFor(size, 1)]
		first := map[*span]bool{}
		var rest [][]byte
		for len(first) < 4 {
			b := alloc(t, h, size)
			if s := spanAt(addrOf(b)); first[s] {
				rest = append(rest, b)
			} else {
				first[s] = true
			}
		}
		for _, b := range rest {
			h.Free(b)
		}
		goHome(h)
		calls, spans := 0, c.partial.Length()
		restore := vm.SetFault(func(op vm.Op) error { // c's lock is held
			if op == vm.OpDecommit {
				calls++
				disturb(c, calls == spans)
			}
			return nil
		})
		c.punch(h)
		restore()
		if calls == 0 || spans < 3 {
			t.Fatalf("%s: %d calls for %d spans", name, calls, spans)
		}
		if once := name == "a block moved" || name == "a span was freed"; (calls == 1) != once {
			t.Errorf("%s: holes in %d spans of %d", name, calls, spans)
		}
		if c.rested != (name == "nothing") {
			t.Errorf("%s: at rest: %v", name, c.rested)
		}
	}
}
