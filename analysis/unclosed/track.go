// Tracking: the search for the instructions that close an owner or give it away.

package unclosed

import (
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/freehold-go/freehold/analysis/internal/flow"
	"github.com/freehold-go/freehold/analysis/internal/offheap"
)

// maxDepth is the most levels of calls that are followed into functions of the package.
const maxDepth = 3

// A tracker follows one owner through a function.
type tracker struct {
	owner offheap.Owner
	depth int
	alias map[ssa.Value]bool       // all values that are the owner
	done  map[ssa.Instruction]bool // the instructions that close it or give it away
}

func newTracker(owner offheap.Owner, depth int) *tracker {
	return &tracker{owner, depth, map[ssa.Value]bool{}, map[ssa.Instruction]bool{}}
}

// endWith adds the Close of a cache's parent to done, since it ends the cache too.
func (t *tracker) endWith(fn *ssa.Function) {
	if !strings.HasSuffix(t.owner.Name, "Cache") {
		return
	}
	for _, e := range flow.Ends(fn) {
		if e.Itself && e.Blocks && flow.KeyOf(e.Owner) == flow.KeyOf(t.owner.Parents[0]) {
			t.done[e.Instr] = true
		}
	}
}

// follow visits all uses of v, which is the owner. If over is true, v is an owner that was made
// over it. Giving v away then gives the owner away too, but Close of v does not close the owner.
func (t *tracker) follow(v ssa.Value, over bool) {
	if t.alias[v] || v.Referrers() == nil {
		return
	}
	t.alias[v] = true
	for _, ref := range *v.Referrers() {
		t.use(ref, v, over)
	}
}

func (t *tracker) use(ref ssa.Instruction, v ssa.Value, over bool) {
	switch ref := ref.(type) {
	case *ssa.Phi, *ssa.ChangeType, *ssa.ChangeInterface, *ssa.MakeInterface:
		t.follow(ref.(ssa.Value), over)
	case *ssa.TypeAssert:
		if ref.CommaOk {
			t.done[ref] = true
		} else {
			t.follow(ref, over)
		}
	case *ssa.Store:
		cell, ok := ref.Addr.(*ssa.Alloc)
		if !ok || flow.OnlyStore(cell) != ref {
			t.done[ref] = true
			return
		}
		t.variable(cell, over)
	case *ssa.BinOp, *ssa.If, *ssa.UnOp:
	case ssa.CallInstruction:
		t.call(ref, v, over)
	default: // Return, MapUpdate, Send, MakeClosure of a bound method and more
		t.done[ref] = true
	}
}

// variable follows the loads of a variable or, in a closure, of a captured one.
func (t *tracker) variable(addr ssa.Value, over bool) {
	for _, ref := range *addr.Referrers() {
		switch ref := ref.(type) {
		case *ssa.UnOp:
			t.follow(ref, over)
		case *ssa.MakeClosure:
			fn := ref.Fn.(*ssa.Function)
			for i, binding := range ref.Bindings {
				if binding == addr && !t.borrows(fn.FreeVars[i], (*tracker).variable) {
					t.done[ref] = true
				}
			}
		}
	}
}

// borrows reports whether another function only uses the owner, and neither closes it nor gives it
// away.
func (t *tracker) borrows(v ssa.Value, follow func(*tracker, ssa.Value, bool)) bool {
	if t.depth == 0 {
		return false
	}
	inner := newTracker(t.owner, t.depth-1)
	follow(inner, v, false)
	return len(inner.done) == 0
}

func (t *tracker) call(call ssa.CallInstruction, v ssa.Value, over bool) {
	c := offheap.Of(call)
	end, _ := c.Ends()
	value, _ := call.(*ssa.Call)
	callee := call.Common().StaticCallee()
	if made, ok := c.Makes(); ok && value != nil && made.Name != "Guard" && slices.Contains(made.Parents, v) {
		if result, _ := results(value, made); result != nil {
			t.follow(result, true)
		}
		return
	}
	switch _, isGo := call.(*ssa.Go); {
	case isGo:
		t.done[call] = true
	case c.Name == "freehold.Must" && value != nil:
		t.follow(value, over)
	case end.Itself && end.Owner == v:
		if !over {
			t.done[call] = true
		}
	case c.Name != "" && (v == c.Owner() || allocates(c)):
	case callee != nil && len(callee.Blocks) > 0:
		for i, arg := range call.Common().Args {
			if arg == v && (i >= len(callee.Params) || !t.borrows(callee.Params[i], (*tracker).follow)) {
				t.done[call] = true
			}
		}
	default:
		t.done[call] = true
	}
}

// allocates reports whether a function of freehold uses its allocator argument only during the
// call.
func allocates(c offheap.Call) bool {
	_, from := c.Allocates()
	end, _ := c.Ends()
	return from || end.Block != nil || c.Name == "freehold.GoodSize"
}
