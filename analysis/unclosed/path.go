// Paths: the search for a return that leaks an owner.

package unclosed

import (
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/freehold-go/freehold/analysis/internal/flow"
)

// leak returns a return that may be reached after call and before any instruction in t.done, or
// nil. It does not search branches in which call has failed or the owner is nil, nor branches that
// contradict a condition under which call is made.
func leak(call *ssa.Call, failure ssa.Value, t *tracker) *ssa.Return {
	known := flow.Conditions(call.Block())
	seen := map[*ssa.BasicBlock]bool{}
	var search func(instrs []ssa.Instruction) *ssa.Return
	search = func(instrs []ssa.Instruction) *ssa.Return {
		for _, instr := range instrs {
			if t.done[instr] || endsTest(instr) {
				return nil
			}
			if end, ok := instr.(*ssa.Return); ok {
				return end
			}
		}
		from := instrs[len(instrs)-1]
		test, _ := from.(*ssa.If)
		for i, succ := range from.Block().Succs {
			if seen[succ] || test != nil && !possible(flow.Condition{Value: test.Cond, Is: i == 0}, failure, t, known) {
				continue
			}
			seen[succ] = true
			if end := search(succ.Instrs); end != nil {
				return end
			}
		}
		return nil
	}
	block := call.Block().Instrs
	return search(block[slices.Index(block, ssa.Instruction(call))+1:])
}

// possible reports whether a condition may hold while the owner exists.
func possible(c flow.Condition, failure ssa.Value, t *tracker, known []flow.Condition) bool {
	if slices.ContainsFunc(known, c.Contradicts) {
		return false
	}
	v, isNil, ok := c.Nil()
	if !ok {
		return true
	}
	x := flow.Value(v)
	failed := failure != nil && x == flow.Value(failure) && !isNil
	return !failed && !(isNil && (t.alias[x] || t.alias[v]))
}

// endsTest reports whether an instruction ends a test by a method of testing.TB.
func endsTest(instr ssa.Instruction) bool {
	call, ok := instr.(ssa.CallInstruction)
	if !ok || !call.Common().IsInvoke() {
		return false
	}
	name, ok := strings.CutPrefix(call.Common().Method.FullName(), "(testing.TB).")
	return ok && (strings.HasPrefix(name, "Fatal") || strings.HasPrefix(name, "Skip") && name != "Skipped" || name == "FailNow")
}
