// Advice and the mapping that it stays with.

//go:build !race

package pages

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/internal/vm"
)

// mapping is a mapping of the process, as in proc(5).
type mapping struct {
	from, to uintptr
	flags    []string // nil if the system shows none
}

// mappingsIn returns the mappings that overlap ranges.
func mappingsIn(t *testing.T, ranges ...Range) (all []mapping) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip("this system does not show mappings: ", err)
	}
	inside := false
	for line := range strings.Lines(string(text)) {
		var m mapping
		if n, _ := fmt.Sscanf(line, "%x-%x", &m.from, &m.to); n == 2 {
			inside = slices.ContainsFunc(ranges, func(s Range) bool { return m.from < s.Base+s.Size && s.Base < m.to })
			if inside {
				all = append(all, m)
			}
		} else if flags, ok := strings.CutPrefix(line, "VmFlags:"); ok && inside {
			all[len(all)-1].flags = strings.Fields(flags)
		}
	}
	return all
}

// needsFlags skips a test if the system, such as an emulator, does not show the advice on a
// mapping.
func needsFlags(t *testing.T) {
	t.Helper()
	h := newHeap(t, Options{})
	if err := Advise(alloc(t, h, 1<<20), vm.Sequential); err != nil {
		t.Fatal(err)
	}
	if advised(t, h, "sr") == 0 {
		t.Skip("this system does not show advice")
	}
}

// advised returns the bytes of h's segments whose mappings have the flag.
func advised(t *testing.T, h *testHeap, flag string) (bytes uintptr) {
	t.Helper()
	for _, m := range mappingsIn(t, h.pages.AllSegments()...) {
		if slices.Contains(m.flags, flag) {
			bytes += m.to - m.from
		}
	}
	return bytes
}

// Advice ends with its block, whichever call frees the block. The memory is one mapping with its
// neighbours again.
func TestAdviceEndsWithItsBlock(t *testing.T) {
	needsFlags(t)
	const size = 16 << 20
	ways := map[string]func(h *testHeap, b []byte){
		"freed": func(h *testHeap, b []byte) { h.Free(b) },
		"cut and freed": func(h *testHeap, b []byte) {
			cut, _ := h.Resize(b, size/2)
			h.Free(cut)
		},
		"moved and freed": func(h *testHeap, b []byte) {
			alloc(t, h, 40000) // in the way
			moved, ok := h.Resize(b, 2*size)
			if !ok {
				t.Skip("pages are not moved here")
			}
			h.Free(moved)
		},
		"grown and freed": func(h *testHeap, b []byte) {
			grown, ok := h.Resize(b, size+1<<20)
			if !ok {
				t.Fatal("the block does not grow")
			}
			h.Free(grown)
		},
	}
	flags := map[vm.Advice]string{vm.HugePages: "hg", vm.Sequential: "sr", vm.Random: "rr"}
	for _, o := range []Options{{}, {WholePages: true}} {
		for way, end := range ways {
			for advice, flag := range flags {
				name := fmt.Sprintf("advice %d, whole pages %v, %s", advice, o.WholePages, way)
				h := newHeap(t, o)
				alloc(t, h, 40000)
				b := alloc(t, h, size)
				before := mappingsIn(t, h.pages.AllSegments()...)
				if err := Advise(b[size/4:3*size/4], advice); err != nil {
					t.Logf("%s: %v", name, err) // a kernel without huge pages
					continue
				}
				if got := advised(t, h, flag); got < size/2-2*vm.PageBytes() {
					t.Fatalf("%s: %d bytes have it while the block lives", name, got)
				}
				end(h, b)
				if got := advised(t, h, flag); got != 0 {
					t.Errorf("%s: %d bytes have it still", name, got)
				}
				if after := mappingsIn(t, h.pages.AllSegments()...); len(h.pages.AllSegments()) == 1 && len(after) != len(before) {
					t.Errorf("%s: %d mappings, then %d: %v", name, len(before), len(after), after)
				}
				h.check(t)
			}
		}
	}
}

// A tail that was cut off an advised block has none of its advice, while the
// block keeps it.
func TestAdviceIsKeptByWhatIsLeftOfABlock(t *testing.T) {
	needsFlags(t)
	h := newHeap(t, Options{})
	b := alloc(t, h, 16<<20)
	if err := Advise(b, vm.Sequential); err != nil {
		t.Skip(err)
	}
	b, ok := h.Resize(b, 4<<20)
	if !ok {
		t.Fatal("the block is not cut")
	}
	if got := advised(t, h, "sr"); got != 4<<20 {
		t.Errorf("%d bytes have the advice, want the 4 MiB of the block", got)
	}
	h.Free(b)
}

// A heap of huge pages has them where advice was taken back.
func TestAHeapOfHugePagesKeepsThem(t *testing.T) {
	h := newHeap(t, Options{HugePages: true})
	b := alloc(t, h, 16<<20)
	before := advised(t, h, "hg")
	if before == 0 {
		t.Skip("this kernel has no huge pages")
	}
	if err := Advise(b, vm.Sequential); err != nil {
		t.Skip(err)
	}
	h.Free(b)
	if got := advised(t, h, "hg"); got != before {
		t.Errorf("%d bytes have huge pages, want the %d that had them before", got, before)
	}
}

// Small use after huge pages takes no more memory than is counted.
func TestMemoryAfterHugePagesIsWhatIsUsed(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 64<<20)
	if err := Advise(b, vm.HugePages); err != nil {
		t.Skip(err)
	}
	fill(b, 1)
	h.Free(b)
	h.Trim()
	var live, between [][]byte
	for range 28 {
		live = append(live, alloc(t, h, 40000))
		between = append(between, alloc(t, h, 2<<20))
	}
	for _, b := range live {
		fill(b, 1)
	}
	resident := 0
	for _, b := range slices.Concat(live, between) {
		resident += residentBytes(t, b[:len(b)&^(int(vm.PageBytes())-1)])
	}
	if most := 28 * 48 << 10; resident > most {
		t.Errorf("%d bytes are resident for 28 blocks of 40,000, want %d at most", resident, most)
	}
}
