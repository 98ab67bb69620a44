// NUMA: the nodes that provide a heap's memory.

package freehold

import (
	"fmt"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/vm"
)

// A NUMAPolicy says from which NUMA node the system takes a page of memory.
type NUMAPolicy uint8

const (
	// NUMALocal leaves the choice to the process's policy, and is the default of a heap. Unless
	// numactl or the like changed that policy, a page is from the node of the processor that first
	// touches it.
	NUMALocal = NUMAPolicy(vm.LocalNode)

	// NUMAPreferred takes pages from one node, and from others while that has no free memory.
	NUMAPreferred = NUMAPolicy(vm.Preferred)

	// NUMABind takes pages from the given nodes alone. When they have no memory left, the kernel's
	// OOM killer ends a process.
	NUMABind = NUMAPolicy(vm.BoundNodes)

	// NUMAInterleave takes pages from each of the given nodes in turn.
	NUMAInterleave = NUMAPolicy(vm.Interleaved)
)

// SetNUMA sets the policy for the memory of the heap's blocks. It applies to pages that are touched
// for the first time from now on. Resident pages stay where they are until the heap returns them to
// the system, so call SetNUMA before the first Alloc to place all blocks. NUMALocal takes no node
// and NUMAPreferred one. NUMABind and NUMAInterleave take any number; without nodes they use all
// that the process may use.
//
// On an error the heap keeps its policy. If the system refuses to restore it in the segments that
// have the new one, the error says in how many bytes. The error names a node that does not exist or
// that the process may not use. It matches [errors.ErrUnsupported] on systems other than Linux and
// in race builds, and [io/fs.ErrPermission] if a container's seccomp profile forbids the call, as
// Docker's default profile does without CAP_SYS_NICE. If the system refuses the policy for a later
// segment, the allocation that needs the segment fails. If it refuses it for pages that the heap
// maps again after a purge, the heap does not use these until the system accepts it: Trim and the
// heap's timer try again.
//
// The policy does not apply to the heap's own bookkeeping, nor to blocks under
// FREEHOLD_DEBUG=guard. A heap with a policy has its own mapping for each segment of 4 to 64 MiB.
func (h *Heap) SetNUMA(policy NUMAPolicy, nodes ...int) error {
	const call = "Heap.SetNUMA"
	pages := h.h.Pages(call)
	switch n := len(nodes); {
	case policy > NUMAInterleave:
		arg.Panicf(call, "the policy %d does not exist", policy)
	case policy == NUMALocal && n != 0:
		arg.Panicf(call, "%d nodes, want none", n)
	case policy == NUMAPreferred && n != 1:
		arg.Panicf(call, "%d nodes, want 1", n)
	}
	for _, node := range nodes {
		arg.AtLeast(call, "node", node, 0)
	}
	allowed, err := vm.AllowedNodes()
	if err != nil {
		return fmt.Errorf("freehold: %s: the system does not let this process choose nodes: %w", call, err)
	}
	set := allowed
	if len(nodes) > 0 {
		set = vm.Nodes{}
	}
	for _, node := range nodes {
		if node > vm.MaxNode || !allowed.Has(node) {
			return fmt.Errorf("freehold: %s: node %d does not exist, or this process may not use it", call, node)
		}
		set.Add(node)
	}
	if err := pages.Place(vm.NodePolicy(policy), set); err != nil {
		return fmt.Errorf("freehold: %s: %w", call, err)
	}
	return nil
}
