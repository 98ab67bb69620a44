package freehold_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/internal/vm"
)

// policyAt returns the policy of the mapping with p, as /proc/self/numa_maps has it.
func policyAt(t *testing.T, p []byte) string {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/numa_maps")
	if err != nil {
		t.Skip(err)
	}
	at, policy := uint64(uintptr(unsafe.Pointer(&p[0]))), ""
	for line := range strings.Lines(string(maps)) {
		var start uint64
		var of string
		if fmt.Sscanf(line, "%x %s", &start, &of); start <= at {
			policy = of
		}
	}
	return policy
}

// numaHeap returns a heap, and skips the test where the process cannot choose nodes.
func numaHeap(t *testing.T) *freehold.Heap {
	t.Helper()
	h := freehold.NewHeap(nil)
	t.Cleanup(h.Close)
	if err := h.SetNUMA(freehold.NUMABind); errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	return h
}

// The kernel has the policy of a heap's memory: of blocks before and after the call, and of memory
// that is mapped anew since a block had an advice. A later heap at its addresses does not.
func TestNUMAPolicies(t *testing.T) {
	for _, tt := range []struct {
		policy freehold.NUMAPolicy
		nodes  []int
		want   string
	}{
		{freehold.NUMABind, []int{0}, "bind:0"},
		{freehold.NUMAInterleave, []int{0}, "interleave:0"},
		{freehold.NUMAInterleave, nil, "interleave:"},
		{freehold.NUMAPreferred, []int{0}, "prefer:0"},
		{freehold.NUMALocal, nil, "default"},
	} {
		h := numaHeap(t)
		const size = 4 << 20
		check := func(when string, b []byte) {
			t.Helper()
			b[0] = 1
			if got := policyAt(t, b); !strings.HasPrefix(got, tt.want) {
				t.Errorf("%s: the policy is %q, want %q", when, got, tt.want)
			}
		}
		before := freehold.Must(h.Alloc(size, 1))
		if err := h.SetNUMA(tt.policy, tt.nodes...); err != nil {
			t.Fatal(err)
		}
		check("a block from before", before)
		check("a small block", freehold.Must(h.Alloc(100, 8)))
		after := freehold.Must(h.Alloc(4*size, 1))
		check("a new segment", after)
		_ = freehold.Advise(before, freehold.AdviceRandom)
		h.Free(before)
		check("memory that was mapped anew", freehold.Must(h.Alloc(size, 1)))
		h.Trim()
		check("after Trim", after)
		at := &after[0]
		h.Close()
		next := freehold.NewHeap(nil)
		for range 100 {
			b, err := next.Alloc(4*size, 1)
			if err != nil {
				break
			}
			b[0] = 1
			if got := policyAt(t, b); got != "default" {
				t.Errorf("another heap, at the address of the first: %t: the policy is %q", at == &b[0], got)
			}
			if at == &b[0] {
				break
			}
		}
		next.Close()
	}
}

func TestNUMANodesThatDoNotExist(t *testing.T) {
	h := numaHeap(t)
	for _, node := range []int{vm.MaxNode, vm.MaxNode + 1, 1 << 40 >> 10} {
		err := h.SetNUMA(freehold.NUMAInterleave, 0, node)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("Heap.SetNUMA: node %d does not exist", node)) {
			t.Error(err)
		}
	}
	b := freehold.Must(h.Alloc(1<<20, 1))
	if got := policyAt(t, b); !strings.HasPrefix(got, "bind:") {
		t.Errorf("after the error the policy is %q", got)
	}
}

// refusePlace makes the calls of mbind fail with the error that next returns for each.
func refusePlace(next func() error) (restore func()) {
	return vm.SetFault(func(op vm.Op) error {
		if op == vm.OpPlace {
			return next()
		}
		return nil
	})
}

// A container's filter of system calls may refuse mbind, at SetNUMA or later.
func TestNUMARefused(t *testing.T) {
	refuse := func(err error) (restore func()) { return refusePlace(func() error { return err }) }
	h := numaHeap(t)
	restore := refuse(syscall.EPERM)
	err := h.SetNUMA(freehold.NUMABind, 0)
	_, late := h.Alloc(1<<20, 1)
	restore()
	if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "does not let this process choose nodes") {
		t.Error(err)
	}
	if !errors.Is(late, freehold.ErrOutOfMemory) || !errors.Is(late, fs.ErrPermission) {
		t.Errorf("a segment without a policy: %v", late)
	}
	if _, err := h.Alloc(1<<20, 1); err != nil {
		t.Error(err)
	}
}

// If the system refuses a segment the new policy, the segments before it get the old one again, and
// so does this one, a part of which may have the new one. If the system refuses that too, the error
// says how much may have the new one.
func TestNUMARollback(t *testing.T) {
	h := numaHeap(t)
	_ = freehold.Must(h.Alloc(1<<20, 1))
	_ = freehold.Must(h.Alloc(64<<20, 1)) // another segment
	for _, tt := range []struct {
		refused int // calls, after the test of SetNUMA and the first segment
		want    string
	}{
		{1, ""},
		{3, "; 71303168 bytes may keep the new policy: "},
	} {
		calls := 0
		restore := refusePlace(func() error {
			if calls++; calls > 2 && calls <= 2+tt.refused {
				return syscall.ENOMEM
			}
			return nil
		})
		err := h.SetNUMA(freehold.NUMAInterleave, 0)
		restore()
		if calls != 5 || !errors.Is(err, syscall.ENOMEM) || strings.Contains(fmt.Sprint(err), "may keep") != (tt.want != "") || !strings.Contains(fmt.Sprint(err), tt.want) {
			t.Errorf("%d calls: %v, want %q", calls, err, tt.want)
		}
	}
}

// Memory that is mapped anew without the heap's policy is not used before it has it.
func TestNUMARefusedAfterAPurge(t *testing.T) {
	freehold.NeedsPlainBlocks(t)
	h := numaHeap(t)
	b := freehold.Must(h.Alloc(4<<20, 1))
	lost := &b[0]
	if err := freehold.Advise(b, freehold.AdviceRandom); err != nil {
		t.Skip(err)
	}
	restore := refusePlace(func() error { return syscall.ENOMEM })
	h.Free(b)
	_, err := h.Alloc(4<<20, 1)
	restore()
	if !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Errorf("with a segment that has lost its policy: %v", err)
	}
	h.Trim()
	b = freehold.Must(h.Alloc(4<<20, 1))
	if got := policyAt(t, b); &b[0] != lost || !strings.HasPrefix(got, "bind:") {
		t.Errorf("after Trim the policy is %q, the block is the first: %t", got, &b[0] == lost)
	}
}

func TestNUMAMisuse(t *testing.T) {
	h := freehold.NewHeap(nil)
	if vm.GoBacked || runtime.GOOS != "linux" {
		if err := h.SetNUMA(freehold.NUMALocal); !errors.Is(err, errors.ErrUnsupported) {
			t.Error(err)
		}
	}
	panics.Want(t, "freehold: Heap.SetNUMA: the policy 4 does not exist", func() { h.SetNUMA(4) })
	panics.Want(t, "freehold: Heap.SetNUMA: 2 nodes, want 1", func() { h.SetNUMA(freehold.NUMAPreferred, 0, 1) })
	panics.Want(t, "freehold: Heap.SetNUMA: 0 nodes, want 1", func() { h.SetNUMA(freehold.NUMAPreferred) })
	panics.Want(t, "freehold: Heap.SetNUMA: 1 nodes, want none", func() { h.SetNUMA(freehold.NUMALocal, 0) })
	panics.Want(t, "freehold: Heap.SetNUMA: node -1, want 0 or more", func() { h.SetNUMA(freehold.NUMABind, -1) })
	h.Close()
	panics.Want(t, "freehold: Heap.SetNUMA: heap ... is closed", func() { h.SetNUMA(freehold.NUMALocal) })
}
