// NUMA: which nodes a heap's memory is from.

package freehold

import (
	"fmt"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/vm"
)

// A NUMAPolicy says from which node of a machine with several the system takes a page of memory.
type NUMAPolicy uint8

const (
	// NUMALocal takes it from the node of the processor that first touches the page. Heaps begin
	// with it.
	NUMALocal = NUMAPolicy(vm.LocalNode)

	// NUMAPreferred takes it from one node, and from others when that has no free memory.
	NUMAPreferred = NUMAPolicy(vm.Preferred)

	// NUMABind takes it from the given nodes alone. When they have no memory left, the kernel's OOM
	// killer ends a process.
	NUMABind = NUMAPolicy(vm.BoundNodes)

	// NUMAInterleave takes pages from each of the given nodes in turn.
	NUMAInterleave = NUMAPolicy(vm.Interleaved)
)

// SetNUMA sets the policy for the memory of the heap's blocks that is touched for the first time
// from now on. Memory that is resident stays where it is, until the heap gives it back to the
// system. Call it before the first block to place all of them. NUMAPreferred wants one node,
// NUMALocal none. NUMABind and NUMAInterleave want any number; none means all that the process may
// use.
//
// After an error the heap has the policy that it had. The error names a node that does not exist, or
// that the process may not use. It matches [errors.ErrUnsupported] on systems other than Linux and
// in race builds, and [io/fs.ErrPermission] if a container's seccomp profile forbids the call, as
// Docker's default profile does without CAP_SYS_NICE. If the system refuses the policy for memory
// that the heap takes later, that allocation fails.
//
// The heap's own bookkeeping, and blocks of FREEHOLD_DEBUG=guard, stay local. Each heap with a policy has mappings of its own: one for each segment of 4 to 64 MiB.
func (h *Heap) SetNUMA(policy NUMAPolicy, nodes ...int) error {
	const call = "Heap.SetNUMA"
	pages := h.h.Pages(call)
	switch n := len(nodes); {
	case policy > NUMAInterleave:
		arg.Panicf(call, "the policy %d does not exist", policy)
	case policy == NUMALocal && n != 0, policy == NUMAPreferred && n != 1:
		arg.Panicf(call, "%d nodes, want %d", n, policy)
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
