// Placement: the NUMA nodes of a heap's pages. Metadata and guarded blocks have no placement.

package pages

import (
	"fmt"

	"github.com/freehold-go/freehold/internal/vm"
)

type placement struct {
	policy vm.NodePolicy
	nodes  vm.Nodes
}

// apply sets the policy of a range that has the default policy.
func (p *placement) apply(addr, size uintptr) error {
	if p.policy == vm.LocalNode {
		return nil
	}
	return vm.Place(addr, size, p.policy, &p.nodes)
}

// Place sets the placement of the heap's present and future segments. On an error it restores the
// old placement, also for the segment that the system has refused: a part of that may have the new
// one. If the system refuses this too, the error says how many bytes may keep the new one.
func (p *Heap) Place(policy vm.NodePolicy, nodes vm.Nodes) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, s := range p.segments {
		if err := vm.Place(s.Base, s.Size, policy, &nodes); err != nil {
			kept, old := uintptr(0), p.placement
			var refusal error
			for _, s := range p.segments[:i+1] {
				if err := vm.Place(s.Base, s.Size, old.policy, &old.nodes); err != nil {
					kept, refusal = kept+s.Size, err
				}
			}
			if refusal != nil {
				return fmt.Errorf("%w; %d bytes may keep the new policy: %w", err, kept, refusal)
			}
			return err
		}
	}
	p.placement = placement{policy, nodes}
	return nil
}
