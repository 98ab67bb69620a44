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
	// NUMALocal is the default of a heap: the process's policy. Unless numactl or the like changed
	// that, a page is from the node of the processor that first touches it.
	NUMALocal = NUMAPolicy(vm.LocalNode)

	// NUMAPreferred takes pages from one node, and from others while that node has no free memory.
	NUMAPreferred = NUMAPolicy(vm.Preferred)

	// NUMABind takes pages from the given nodes only. When these have no memory left, the kernel's
	// OOM killer ends a process.
	NUMABind = NUMAPolicy(vm.BoundNodes)

	// NUMAInterleave takes pages from the given nodes in turn.
	NUMAInterleave = NUMAPolicy(vm.Interleaved)
)

// SetNUMA sets the policy for the memory of the heap's blocks. It applies to pages when they are next
// touched for the first time. Resident pages stay where they are until the heap returns them to the
// system, so to place all blocks call SetNUMA before the first Alloc. NUMALocal takes no node and
// NUMAPreferred one. NUMABind and NUMAInterleave take any number; with none they use all nodes that
// the process may use.
//
// On an error the heap keeps its old policy. If some memory has the new one already, and the system
// refuses to restore the old one there, the error says for how many bytes at most. The error matches
// [errors.ErrUnsupported] on systems other than Linux and in race builds. It matches
// [io/fs.ErrPermission] if a container's seccomp profile forbids the call, as Docker's default
// profile does without CAP_SYS_NICE. It names a node that does not exist or that the process may not
// use.
//
// The system may refuse the policy later. For a new segment, the allocation that needs it then fails.
// Pages that the heap maps again after a purge stay unused until the system accepts the policy: Trim
// and the heap's timer try again.
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
