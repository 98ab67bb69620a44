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
	n.noteChange()
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
	n.noteChange()
	f(n.state)
}

// noteChange finds the state and tells the watcher. It returns early for a node that was and stays
// calm. tree.mu is held.
func (n *Node) noteChange() {
	before := n.state.Level
	if before == pressure.Calm && n.used <= n.softMark.Begin && n.refused == 0 && !n.more {
		return
	}
	n.state = n.find()
	n.more = n.watcher.Changed(before, n.state)
}

// find returns the state. tree.mu is held.
func (n *Node) find() pressure.State {
	level := pressure.LevelOf(n.used, n.state.Level, n.softMark, n.hardMark)
	if n.refused > 0 && (n.hard == 0 || n.refused <= n.hard-n.used || !pressure.Ahead(n.tree.now(), n.refusedUntil)) {
		n.refused = 0
	}
	if n.refused > 0 {
		level = pressure.Hard
	}
	s := pressure.State{Level: level}
	if level > pressure.Calm {
		toEnd := n.softMark.Begin - n.softMark.End // Soft ends this far below its begin
		s.Wanted = max(n.used-n.softMark.Begin, 0) + toEnd + n.refused
	}
	return s
}

// applyLimits sets soft, hard and marks from the limits that SetLimits and Follow have set.
// tree.mu is held.
func (n *Node) applyLimits() {
	n.hard = lower(n.setHard, n.followed)
	n.soft = cmp.Or(n.setSoft, n.hard/100*pressure.SoftPercent)
	n.hardMark = pressure.MarkAt(n.hard - n.hard/pressure.HysteresisShare)
	n.softMark = pressure.MarkAt(n.soft)
	n.softMark.Begin = min(n.softMark.Begin, n.hardMark.Begin)
	n.softMark.End = min(n.softMark.End, n.hardMark.End)
}

// lower returns the lower one of two limits.
func lower(a, b int64) int64 {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}
