// Advice and the mapping that it stays with.

//go:build !race

package heap

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/vm"
)

// mapping is a line of /proc/self/smaps with its flags.
type mapping struct {
	from, to uintptr
	name     string
	flags    []string // as in proc(5)
}

// mappingsOf returns the mappings that h's segments are in.
func mappingsOf(t *testing.T, h *Heap) []mapping {
	t.Helper()
	return mappingsIn(t, h.pages.AllSegments())
}

// needsFlags skips a test if the system, such as an emulator, does not show the advice on a
// mapping.
func needsFlags(t *testing.T) {
	t.Helper()
	const size = 1 << 20
	at, err := vm.Reserve(size, size)
	if err == nil {
		err = vm.Commit(at, size)
	}
	if err == nil {
		err = vm.Advise(at, size, vm.Sequential)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mappingsIn(t, []pages.Range{{Base: at, Size: size}}) {
		if slices.Contains(m.flags, "sr") {
			return
		}
	}
	t.Skip("this system does not show what was advised")
}

// mappingsIn returns the mappings that ranges are in. It skips the test where the
// system shows no flags.
func mappingsIn(t *testing.T, ranges []pages.Range) (all []mapping) {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skip("this system does not show mappings: ", err)
	}
	defer f.Close()
	inside, flags := false, false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		var m mapping
		if n, _ := fmt.Sscanf(fields[0], "%x-%x", &m.from, &m.to); n == 2 {
			inside = slices.ContainsFunc(ranges, func(s pages.Range) bool {
				return m.from < s.Base+s.Size && s.Base < m.to
			})
			if inside {
				m.name = strings.Join(fields[min(5, len(fields)):], " ")
				all = append(all, m)
			}
		} else if inside && fields[0] == "VmFlags:" {
			all[len(all)-1].flags, flags = fields[1:], true
		}
	}
	if !flags {
		t.Skip("this system shows no flags of mappings")
	}
	return all
}

// advised returns how many bytes of h are mapped with a flag.
func advised(t *testing.T, h *Heap, flag string) (bytes uintptr) {
	t.Helper()
	for _, m := range mappingsOf(t, h) {
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
	ways := map[string]func(h *Heap, b []byte){
		"freed": func(h *Heap, b []byte) { h.Free(b) },
		"cut and freed": func(h *Heap, b []byte) {
			cut, _ := h.Resize(b, size/2)
			h.Free(cut)
		},
		"moved and freed": func(h *Heap, b []byte) {
			alloc(t, h, 40000) // in the way
			moved, ok := h.Resize(b, 2*size)
			if !ok {
				t.Skip("pages are not moved here")
			}
			h.Free(moved)
		},
		"grown and freed": func(h *Heap, b []byte) {
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
				before := mappingsOf(t, h)
				if err := pages.Advise(b[size/4:3*size/4], advice); err != nil {
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
				if after := mappingsOf(t, h); len(h.pages.AllSegments()) == 1 && len(after) != len(before) {
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
	if err := pages.Advise(b, vm.Sequential); err != nil {
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
	if err := pages.Advise(b, vm.Sequential); err != nil {
		t.Skip(err)
	}
	h.Free(b)
	if got := advised(t, h, "hg"); got != before {
		t.Errorf("%d bytes have huge pages, want the %d that had them before", got, before)
	}
}

// A small block shares its span with others, so it takes no advice that stays with a mapping.
func TestAdviceThatStaysIsNotForSmallBlocks(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 32<<10)
	for advice, flag := range map[vm.Advice]string{vm.HugePages: "hg", vm.Sequential: "sr", vm.Random: "rr"} {
		if err := pages.Advise(b, advice); err != nil {
			t.Errorf("advice %d: %v", advice, err)
		}
		if got := advised(t, h, flag); got != 0 {
			t.Errorf("advice %d: %d bytes have it", advice, got)
		}
	}
	h.Free(b)
}

// Small use after huge pages takes no more memory than is counted.
func TestMemoryAfterHugePagesIsWhatIsUsed(t *testing.T) {
	h := newHeap(t, Options{})
	b := alloc(t, h, 64<<20)
	if err := pages.Advise(b, vm.HugePages); err != nil {
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
