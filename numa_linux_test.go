package freehold_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/vm"
)

// mountProc mounts /proc if this process is the init of scripts/numa's virtual machine.
func mountProc(t *testing.T) {
	if _, err := os.Stat("/proc/self"); err == nil || os.Getpid() != 1 {
		return
	}
	os.Mkdir("/proc", 0o555)
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		t.Fatal(err)
	}
}

// nodesAt returns the numbers of bytes on nodes 0 and 1 in the mapping with p, and its line in
// /proc/self/numa_maps.
func nodesAt(t *testing.T, p []byte) (bytes [2]int, line string) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/numa_maps")
	if err != nil {
		t.Skip(err)
	}
	at := uint64(uintptr(unsafe.Pointer(&p[0])))
	for l := range strings.Lines(string(maps)) {
		var start uint64
		if fmt.Sscanf(l, "%x", &start); start <= at {
			line = strings.TrimSpace(l)
		}
	}
	for field := range strings.FieldsSeq(line) {
		var node, pages int
		if n, _ := fmt.Sscanf(field, "N%d=%d", &node, &pages); n == 2 && node < 2 {
			bytes[node] = pages * os.Getpagesize()
		}
	}
	return bytes, line
}

// The kernel takes the pages of blocks from the nodes of the policy: when they are first touched,
// after a purge, and after they were mapped anew. It runs on two nodes: see scripts/numa.
func TestNUMANodes(t *testing.T) {
	mountProc(t)
	numaHeap(t)
	if allowed, err := vm.AllowedNodes(); err != nil || !allowed.Has(0) || !allowed.Has(1) {
		t.Skip("this process may not use nodes 0 and 1")
	}
	const size = 16 << 20
	for _, tt := range []struct {
		name   string
		policy freehold.NUMAPolicy
		nodes  []int
		most   [2]int // bytes on each node
	}{
		{"bind 0", freehold.NUMABind, []int{0}, [2]int{size, 0}},
		{"bind 1", freehold.NUMABind, []int{1}, [2]int{0, size}},
		{"preferred 0", freehold.NUMAPreferred, []int{0}, [2]int{size, 0}},
		{"preferred 1", freehold.NUMAPreferred, []int{1}, [2]int{0, size}},
		{"interleave", freehold.NUMAInterleave, nil, [2]int{size / 2, size / 2}},
		{"interleave 0 and 1", freehold.NUMAInterleave, []int{0, 1}, [2]int{size / 2, size / 2}},
		{"interleave 1", freehold.NUMAInterleave, []int{1}, [2]int{0, size}},
	} {
		for _, huge := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, huge=%t", tt.name, huge), func(t *testing.T) {
				h := freehold.NewHeap(&freehold.HeapOptions{HugePages: huge})
				defer h.Close()
				if err := h.SetNUMA(tt.policy, tt.nodes...); err != nil {
					t.Fatal(err)
				}
				for _, when := range []string{"first touched", "purged", "mapped anew"} {
					b := freehold.Must(h.Alloc(size, 1))
					for i := range b {
						b[i] = 1
					}
					got, line := nodesAt(t, b)
					t.Logf("%s: %s", when, line)
					for node, most := range tt.most {
						if got[node] < most*7/8 || got[node] > most+size/8 {
							t.Errorf("%s: %d bytes on node %d, want %d", when, got[node], node, most)
						}
					}
					if when == "purged" {
						_ = freehold.Advise(b, freehold.AdviceRandom)
					}
					h.Free(b)
					h.Trim()
				}
			})
		}
	}
}
