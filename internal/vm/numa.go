// Nodes: from which NUMA node the pages of a range come.

package vm

import "math/bits"

// A NodePolicy says how pages are spread over nodes. Its values are Linux's.
type NodePolicy uint8

const (
	LocalNode   NodePolicy = iota // the processor's that first touches the page
	Preferred                     // one node while it has memory
	BoundNodes                    // these nodes alone
	Interleaved                   // each node in turn
)

// MaxNode is the greatest node number of any Linux.
const MaxNode = 1<<10 - 1

// Nodes is a set of nodes.
type Nodes [(MaxNode + 1) / bits.UintSize]uint

func (n *Nodes) Add(node int)      { n[node/bits.UintSize] |= 1 << (node % bits.UintSize) }
func (n *Nodes) Has(node int) bool { return n[node/bits.UintSize]>>(node%bits.UintSize)&1 != 0 }

// AllowedNodes returns the nodes that the process may use. If it may not call Place, the error is
// the system's. It matches [ErrUnsupported] if the system has no nodes.
func AllowedNodes() (nodes Nodes, err error) {
	if GoBacked {
		return nodes, &Error{Op: OpPlace, Err: ErrUnsupported}
	}
	err = do(OpPlace, 0, 0, func(_, _ uintptr) error { return allowedNodes(&nodes) })
	return nodes, err
}

// Place sets the policy of the pages of a range that are touched for the first time from now on.
// Revoke and Renew end it.
//
// Precondition: AllowedNodes has the nodes.
func Place(addr, size uintptr, p NodePolicy, nodes *Nodes) error {
	check(OpPlace, addr, size)
	return do(OpPlace, addr, size, func(addr, size uintptr) error { return place(addr, size, p, nodes) })
}
