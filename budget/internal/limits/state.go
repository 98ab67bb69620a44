// State: how short a node is.
//
//	0                      soft limit       31/32 of hard limit   hard limit
//	|-------- Calm ------------|------ Soft ----------|------ Hard ----|
//
// A refused request makes the node Hard too, for RefusedTime.

package limits

import (
	"cmp"
	"math"

	"github.com/freehold-go/freehold/budget/internal/pressure"
)

// Watcher learns of each change of a node's use, limits or state while the node is not calm, and
// when it becomes calm. The tree is locked then: Changed may take leaf locks. It must call no
// method of a node, which would deadlock.
type Watcher interface {
	// Changed reports whether it wants to learn of the next change of a calm node too.
	Changed(before pressure.Level, now pressure.State) (more bool)
}

// Figures is a snapshot of a node.
type Figures struct {
	Soft, Hard int64 // 0 is none
	Used, Peak int64
	Room       int64 // the largest charge that would succeed; math.MaxInt64 if there is no limit
	Refusals   uint64
	State      pressure.State
}

// Figures returns the node's figures.
func (n *Node) Figures() Figures {
	n.tree.mu.Lock()
	defer n.tree.mu.Unlock()
	n.note()
	room := int64(math.MaxInt64)
	for x := n; x != nil; x = x.parent {
		if x.hard != 0 {
			room = min(room, max(x.hard-x.used, 0))
		}
	}
	return Figures{n.soft, n.hard, n.used, n.peak, room, n.refusals, n.state}
}

// State returns the node's state.
func (n *Node) State() (s pressure.State) {
	n.Locked(func(now pressure.State) { s = now })
	return s
}

// Locked calls f with the node's state while the tree is locked, so f and Watcher.Changed never run
// at the same time. f may take leaf locks. It must call no method of a node, which would deadlock.
func (n *Node) Locked(f func(pressure.State)) {
	n.tree.mu.Lock()
	defer n.tree.mu.Unlock()
	n.note()
	f(n.state)
}

// note finds the state and tells the watcher. It returns early for a node that was and stays calm.
// tree.mu is held.
func (n *Node) note() {
	before := n.state.Level
	if before == pressure.Calm && n.used <= n.marks[0].Begin && n.refused == 0 && !n.more {
		return
	}
	n.state = n.find()
	n.more = n.watcher.Changed(before, n.state)
}

// find returns the state. tree.mu is held.
func (n *Node) find() pressure.State {
	level := pressure.LevelOf(n.used, n.state.Level, n.marks[0], n.marks[1])
	if n.refused > 0 && (n.hard == 0 || n.refused <= n.hard-n.used || !pressure.Ahead(n.tree.now(), n.refusedUntil)) {
		n.refused = 0
	}
	if n.refused > 0 {
		level = pressure.Hard
	}
	s := pressure.State{Level: level}
	if level > pressure.Calm {
		soft := n.marks[0]
		s.Wanted = max(n.used-soft.Begin, 0) + soft.Begin - soft.End + n.refused
	}
	return s
}

// applyLimits sets soft, hard and marks from the limits that SetLimits and Follow have set.
// tree.mu is held.
func (n *Node) applyLimits() {
	n.hard = lower(n.asked[1], n.followed)
	n.soft = cmp.Or(n.asked[0], n.hard/100*pressure.SoftPercent)
	hard := n.hard - n.hard/pressure.HysteresisShare
	n.marks = [2]pressure.Mark{pressure.MarkAt(n.soft), pressure.MarkAt(hard)}
	n.marks[0].Begin = min(n.marks[0].Begin, n.marks[1].Begin)
	n.marks[0].End = min(n.marks[0].End, n.marks[1].End)
}

// lower returns the lower one of two limits.
func lower(a, b int64) int64 {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}
