// State: how short a node is, and the requests that it has refused.
//
//	|<- hard limit ---------------------------------------->|
//	| used                                                  |
//	                                    soft limit: soft  31/32: hard

package limits

import (
	"math"
	"time"

	"github.com/freehold-go/freehold/budget/internal/pressure"
)

// RefusedTime is how long a refused request keeps the state Hard, unless there is room for it
// before. Rounds that are a second apart see it once or twice.
const RefusedTime = 3 * time.Second / 2

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

// Look returns the node's state.
func (n *Node) Look() (s pressure.State) {
	n.Locked(func(now pressure.State) { s = now })
	return s
}

// Locked calls f with the node's state while the tree is locked, so f is never at the same time as
// Watcher.Changed. f may take leaf locks, and must not call the node.
func (n *Node) Locked(f func(pressure.State)) {
	n.tree.mu.Lock()
	defer n.tree.mu.Unlock()
	n.note()
	f(n.state)
}

// Refuse notes that a request of n for bytes was refused. It returns the node that is full, or
// nil if there is room by now. shared reports whether nodes other than n have used a part of the
// full node's limit.
func (n *Node) Refuse(bytes int64, at time.Time) (full *Node, shared bool) {
	n.tree.mu.Lock()
	defer n.tree.mu.Unlock()
	if full = n.full(bytes, 0); full == nil {
		return nil, false
	}
	full.refusals++
	if bytes <= full.hard { // a request that never fits is no shortage
		full.refused = max(full.refused, bytes)
		full.refusedUntil = at.Add(RefusedTime)
		full.note()
	}
	return full, full != n || full.children > 0
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
