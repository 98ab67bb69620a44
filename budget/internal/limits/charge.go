// Charges: the use of each node on the way up, refusals, and limits.
//
// A charge goes to a node and to each node above it. If one of them has no room, none is charged.
// One mutex guards the tree. So no charge takes a node above its limit, even for an instant, and a
// charge that fails makes no other charge fail. A charge pays for fresh pages. To fault them in
// takes a hundred times longer, so the mutex is no bottleneck (BenchmarkCharge).

package limits

import (
	"cmp"
	"math"
	"time"

	"github.com/freehold-go/freehold/budget/internal/pressure"
)

// RefusedTime is how long a refused request keeps the state Hard. Room for the request ends it
// earlier. Rounds that are a second apart see it once or twice.
const RefusedTime = 3 * time.Second / 2

// Refusal says why a charge was refused.
type Refusal struct {
	Node  *Node // without room: the charged node, or one above it
	Bytes int64 // of the charge and its slack
	Limit int64 // of the node; math.MaxInt64 if there is none
}

// Charge charges bytes to n and to the nodes above it. If one of them has no room, Charge charges
// none and returns the refusal.
func (n *Node) Charge(bytes int64) *Refusal {
	n.tree.mu.Lock()
	defer n.tree.mu.Unlock()
	if full := n.full(bytes, 0); full != nil {
		return full.refusal(bytes)
	}
	for x := n; x != nil; x = x.parent {
		x.used += bytes
		x.peak = max(x.peak, x.used)
		x.noteChange()
	}
	n.tree.charged += bytes
	return nil
}

// MayCharge charges nothing. It returns the refusal that Charge would return if the charge had to
// leave slack bytes free, or nil.
func (n *Node) MayCharge(bytes, slack int64) *Refusal {
	n.tree.mu.Lock()
	defer n.tree.mu.Unlock()
	if full := n.full(bytes, slack); full != nil {
		return full.refusal(bytes + slack)
	}
	return nil
}

// Refund takes bytes off n and the nodes above it.
func (n *Node) Refund(bytes int64) {
	n.tree.mu.Lock()
	defer n.tree.mu.Unlock()
	for x := n; x != nil; x = x.parent {
		x.used -= bytes
		x.noteChange()
	}
	n.tree.charged -= bytes
}

// Full returns the first node on the way up that has no room for bytes, or nil.
func (n *Node) Full(bytes int64) *Node {
	n.tree.mu.Lock()
	defer n.tree.mu.Unlock()
	return n.full(bytes, 0)
}

// full returns the first node on the way up with less room than bytes+slack, or nil. There is
// always room for 0 bytes. tree.mu is held.
func (n *Node) full(bytes, slack int64) *Node {
	for x := n; x != nil; x = x.parent {
		if bytes > 0 && bytes+slack > x.most()-x.used {
			return x
		}
	}
	return nil
}

// most returns the hard limit, or math.MaxInt64 if there is none. tree.mu is held.
func (n *Node) most() int64 { return cmp.Or(n.hard, math.MaxInt64) }

func (n *Node) refusal(bytes int64) *Refusal { return &Refusal{n, bytes, n.most()} }

// Refuse notes that a request for bytes, charged to n, was refused. It returns the node that is
// full, or nil if there is room by now. hasPeers reports whether other nodes use the full node's
// limit too.
func (n *Node) Refuse(bytes int64, at time.Time) (full *Node, hasPeers bool) {
	n.tree.mu.Lock()
	defer n.tree.mu.Unlock()
	if full = n.full(bytes, 0); full == nil {
		return nil, false
	}
	full.refusals++
	if bytes <= full.hard { // a request that never fits is no shortage
		full.refused = max(full.refused, bytes)
		full.refusedUntil = at.Add(RefusedTime)
		full.noteChange()
	}
	return full, full != n || full.children > 0
}

// SetLimits sets the soft and the hard limit. 0 is none.
func (n *Node) SetLimits(soft, hard int64) {
	n.tree.mu.Lock()
	defer n.tree.mu.Unlock()
	n.setSoft, n.setHard = soft, hard
	n.applyLimits()
	n.noteChange()
}

// Follow sets a second hard limit beside the one of SetLimits, and returns the new state. The lower
// limit holds. 0 means no limit.
func (n *Node) Follow(limit int64) pressure.State {
	n.tree.mu.Lock()
	defer n.tree.mu.Unlock()
	n.followed = limit
	n.applyLimits()
	n.noteChange()
	return n.state
}

// Follows reports whether the limit of Follow is the one that holds.
func (n *Node) Follows() bool {
	n.tree.mu.Lock()
	defer n.tree.mu.Unlock()
	return n.followed != 0 && n.hard == n.followed
}

// Lowest returns the lowest hard limit of n and the nodes above it, or 0 if there is none.
func (n *Node) Lowest() int64 {
	n.tree.mu.Lock()
	defer n.tree.mu.Unlock()
	least := int64(0)
	for x := n; x != nil; x = x.parent {
		least = lower(least, x.hard)
	}
	return least
}

// Charged returns the bytes that are charged to all nodes of the tree.
func (n *Node) Charged() int64 {
	n.tree.mu.Lock()
	defer n.tree.mu.Unlock()
	return n.tree.charged
}
