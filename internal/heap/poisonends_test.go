//go:build !asan

// Checked blocks: what is left of them when they end, and at the edges.

package heap

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// lateWrites returns a heap that has four blocks in quarantine, of which the second, of 101
// bytes, and the third were written since.
func lateWrites(t *testing.T) (h *Heap, second []byte) {
	h = newHeap(t, Options{Name: "guilty"})
	var all [4][]byte
	for i := range all {
		all[i] = alloc(t, h, 100+i)
	}
	for _, b := range all {
		h.Free(b)
	}
	all[1][7]++
	all[2][5]++
	return h, all[1]
}

// Of several late writes, that to the block that was freed first is told. All blocks have
// left the quarantine by then.
func TestFirstOfManyLateWritesIsTold(t *testing.T) {
	CheckBlocks(t, 1<<20)
	for name, find := range map[string]func(h *Heap){"Trim": (*Heap).Trim, "Close": (*Heap).Close} {
		h, b := lateWrites(t)
		mustPanic(t, func() { find(h) }, fmt.Sprintf("byte 7 of the block of 101 bytes at %p was written after its Free", b))
		if c := h.checks; c.held != 0 || len(c.queue) != 0 || len(c.blocks) != 0 {
			t.Errorf("after %s: %d bytes, %d blocks in quarantine, %d known", name, c.held, len(c.queue), len(c.blocks))
		}
		if got := panicOf(func() { find(h) }); got != "" {
			t.Errorf("%s again: %s", name, got)
		}
	}
}

// A Close that finds a late write has given back all memory before it panics.
func TestCloseThatFindsALateWriteIsComplete(t *testing.T) {
	CheckBlocks(t, 1<<20)
	h, _ := lateWrites(t)
	mustPanic(t, h.Close, "was written after its Free")
	if st := h.Stats(); st.Committed != 0 || st.Blocks != 0 {
		t.Errorf("%+v", st)
	}
	if all := h.pages.AllSegments(); len(all) != 0 {
		t.Errorf("the closed heap has addresses: %x", all)
	}
}

// Small blocks in quarantine count as cached, in their class.
func TestSmallBlocksInQuarantineAreCached(t *testing.T) {
	CheckBlocks(t, 1<<20)
	h := newHeap(t, Options{})
	all := [][]byte{alloc(t, h, 100), alloc(t, h, 100), alloc(t, h, 1000)}
	before := h.Stats()
	for _, b := range all {
		h.Free(b)
	}
	after := h.Stats()
	freed := 0
	for i, c := range before.Classes {
		n := c.Blocks - after.Classes[i].Blocks
		if cached := after.Classes[i].Cached - c.Cached; cached != n {
			t.Errorf("size %d: %d blocks were freed, and %d more are cached", c.Size, n, cached)
		}
		freed += n
	}
	if freed != len(all) {
		t.Errorf("%d blocks were freed, want %d", freed, len(all))
	}
}

// A block that was moved is not known at its old address, which may be another heap's next.
func TestMovedCheckedBlockIsForgotten(t *testing.T) {
	CheckBlocks(t, 1<<20)
	h := newHeap(t, Options{})
	b := alloc(t, h, 1<<20)
	alloc(t, h, 40000) // so that it cannot grow in place
	r, ok := h.Resize(b, 4<<20)
	if !ok {
		t.Skip("pages are not moved here")
	}
	if addrOf(r) == addrOf(b) {
		t.Fatal("the block grew in place")
	}
	if k, found := h.checks.find(addrOf(b)); found {
		t.Errorf("at the old address there is %+v", k)
	}
	if n := len(h.checks.blocks); n != 2 {
		t.Errorf("%d blocks are known, want 2", n)
	}
}

// A red zone does not make a size overflow.
func TestLargestSizesOfCheckedBlocks(t *testing.T) {
	CheckBlocks(t, 1<<20)
	h := newHeap(t, Options{})
	b := alloc(t, h, 100)
	for _, size := range []int{math.MaxInt, math.MaxInt - redBytes, math.MaxInt - redBytes + 1} {
		if got := panicOf(func() {
			if _, err := h.Alloc(size, 1, false); err == nil {
				t.Errorf("%d bytes", size)
			}
			if n := h.GoodSize(size); n != size {
				t.Errorf("GoodSize(%d) is %d", size, n)
			}
			if _, ok := h.Resize(b, size); ok {
				t.Errorf("100 bytes became %d", size)
			}
		}); got != "" {
			t.Errorf("%d bytes: %s", size, got)
		}
	}
	h.Free(b)
}

// FREEHOLD_DEBUG says how much is kept in quarantine, and so whether blocks are checked.
func TestQuarantineOfTheEnvironment(t *testing.T) {
	const child = "FREEHOLD_TEST_QUARANTINE"
	if os.Getenv(child) != "" {
		fmt.Printf("in quarantine: %d\n", quarantineBytes)
		return
	}
	if exec.Command(os.Args[0], "-test.list=^$").Run() != nil {
		t.Skip("there are no processes here")
	}
	for mode, want := range map[string]int{
		"":                        0,
		"leak":                    0,
		"poison":                  defaultQuarantine,
		"quarantine":              defaultQuarantine,
		"quarantine=1":            1,
		"quarantine=10000":        10000,
		"poison,quarantine=10000": 10000,
		"quarantine=0":            0,
		"quarantine=0,poison":     defaultQuarantine,
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), child+"=1", "FREEHOLD_DEBUG="+mode, "GORACE=atexit_sleep_ms=0")
		out, err := cmd.Output()
		if line := fmt.Sprintf("in quarantine: %d\n", want); err != nil || !strings.Contains(string(out), line) {
			t.Errorf("FREEHOLD_DEBUG=%s: %v, no %q in\n%s", mode, err, line, out)
		}
	}
}
