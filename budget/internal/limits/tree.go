// Tree: nodes, their names and their parents.

package limits

import (
	"time"

	"github.com/freehold-go/freehold/budget/internal/pressure"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/lockrank"
)

// tree is shared by its nodes. One mutex guards all of them: a charge changes each node
// on its way up. Under mu only leaf locks are taken.
type tree struct {
	mu      lockrank.Mutex[lockrank.Ledger]
	now     func() time.Time
	charged int64 // to all nodes; mu guards it
}

// Node is a limit within the limits of the nodes above it. All methods are safe for concurrent use.
type Node struct {
	tree    *tree
	parent  *Node
	name    string // after the names of the nodes above
	watcher Watcher

	// tree.mu guards the rest.
	soft     int64 // setSoft, or else 85% of hard; 0 means none
	hard     int64 // the lower one of setHard and followed; 0 means none
	setSoft  int64 // by SetLimits; 0 means none
	setHard  int64 // by SetLimits; 0 means none
	followed int64 // the hard limit that Follow has set; 0 means none
	softMark pressure.Mark
	hardMark pressure.Mark
	used     int64 // charged to the node and the nodes below
	peak     int64 // of used
	children int   // open nodes right below
	closed   bool

	state        pressure.State
	more         bool      // the watcher wants the next change even if the node stays calm
	refused      int64     // bytes of the largest refused request that still has no room
	refusedUntil time.Time // when refused is forgotten
	refusals     uint64
}

// New returns a node below parent. If parent is nil, New makes a new tree, whose clock is now. It
// panics if parent is closed.
func New(parent *Node, name string, w Watcher, now func() time.Time) *Node {
	if parent == nil {
		n := &Node{tree: &tree{now: now}, name: name, watcher: w}
		n.applyLimits()
		return n
	}
	parent.tree.mu.Lock()
	defer parent.tree.mu.Unlock()
	parent.mustBeOpen("budget.NewAccount")
	parent.children++
	n := &Node{tree: parent.tree, parent: parent, name: parent.name + "/" + name, watcher: w}
	n.applyLimits()
	return n
}

// Name returns the node's name after the names of the nodes above: process/search/tenant.
func (n *Node) Name() string { return n.name }

// Watcher returns the watcher that New was given.
func (n *Node) Watcher() Watcher { return n.watcher }

// IsIn reports whether n is other or below it.
func (n *Node) IsIn(other *Node) bool {
	return n == other || n.parent != nil && n.parent.IsIn(other)
}

// Now returns the time by the tree's clock.
func (n *Node) Now() time.Time { return n.tree.now() }

// Close ends the node. Precondition: it has no open nodes below and no charges. Figures still
// returns its last figures.
func (n *Node) Close() {
	n.tree.mu.Lock()
	defer n.tree.mu.Unlock()
	n.closed = true
	if n.parent != nil {
		n.parent.children--
	}
}

// HasBelow reports whether there are open nodes below n.
func (n *Node) HasBelow() bool {
	n.tree.mu.Lock()
	defer n.tree.mu.Unlock()
	return n.children > 0
}

// Closed reports whether Close was called.
func (n *Node) Closed() bool {
	n.tree.mu.Lock()
	defer n.tree.mu.Unlock()
	return n.closed
}

// MustBeMade panics if n is nil, as in a zero Account.
func (n *Node) MustBeMade(call string) {
	if n == nil {
		arg.Panicf(call, "zero value: budget.NewAccount makes an Account")
	}
}

// MustBeOpen panics for a nil node, and after Close.
func (n *Node) MustBeOpen(call string) {
	n.MustBeMade(call)
	n.tree.mu.Lock()
	defer n.tree.mu.Unlock()
	n.mustBeOpen(call)
}

// mustBeOpen panics after Close. tree.mu is held.
func (n *Node) mustBeOpen(call string) {
	if n.closed {
		arg.Panicf(call, "account %q is closed", n.name)
	}
}
