// NUMA: the nodes that provide the pages of a range.

package vm

import "math/bits"

// A NodePolicy says how pages are spread over nodes. Its values are Linux's (mbind).
type NodePolicy uint8

const (
	LocalNode   NodePolicy = iota // MPOL_DEFAULT: the thread's policy, by default its own node
	Preferred                     // one node while it has free memory
	BoundNodes                    // these nodes alone
	Interleaved                   // each node in turn
)

// MaxNode is the greatest node number that any build of Linux can have.
const MaxNode = 1<<10 - 1

// Nodes is a set of nodes.
type Nodes [(MaxNode + 1) / bits.UintSize]uint

func (n *Nodes) Add(node int)      { n[node/bits.UintSize] |= 1 << (node % bits.UintSize) }
func (n *Nodes) Has(node int) bool { return n[node/bits.UintSize]>>(node%bits.UintSize)&1 != 0 }

// AllowedNodes returns the nodes that the process may use. The error is the system's if the process
// may not call Place. It matches [ErrUnsupported] if the system has no NUMA calls.
func AllowedNodes() (nodes Nodes, err error) {
	if GoBacked {
		return nodes, &Error{Op: OpPlace, Err: ErrUnsupported}
	}
	err = do(OpPlace, 0, 0, func(_, _ uintptr) error { return allowedNodes(&nodes) })
	return nodes, err
}

// Place sets the policy of a range, for pages that are touched for the first time from now on.
// Revoke and Renew end it.
//
// Precondition: nodes is a subset of AllowedNodes.
func Place(addr, size uintptr, p NodePolicy, nodes *Nodes) error {
	check(OpPlace, addr, size)
	return do(OpPlace, addr, size, func(addr, size uintptr) error { return place(addr, size, p, nodes) })
}
