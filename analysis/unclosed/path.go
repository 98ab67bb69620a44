// Paths: whether a return can be reached from where an owner was made.

package unclosed

import (
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/freehold-go/freehold/analysis/internal/flow"
)

// leak returns a return that may be reached after call and before anything in
// t.done, or nil. Not searched are the branches in which call has failed or the
// owner is nil, and those that contradict a condition under which call is made.
func leak(call *ssa.Call, failure ssa.Value, t *tracker) *ssa.Return {
	known := conditions(call.Block())
	seen := map[*ssa.BasicBlock]bool{}
	var search func(instrs []ssa.Instruction) *ssa.Return
	search = func(instrs []ssa.Instruction) *ssa.Return {
		for _, instr := range instrs {
			if t.done[instr] || endsTest(instr) {
				return nil
			}
			switch instr := instr.(type) {
			case *ssa.Return:
				return instr
			case *ssa.Panic:
				return nil
			case *ssa.If:
				for i, succ := range instr.Block().Succs {
					if seen[succ] || !possible(instr.Cond, i == 0, failure, t, known) {
						continue
					}
					seen[succ] = true
					if end := search(succ.Instrs); end != nil {
						return end
					}
				}
				return nil
			case *ssa.Jump:
				succ := instr.Block().Succs[0]
				if seen[succ] {
					return nil
				}
				seen[succ] = true
				return search(succ.Instrs)
			}
		}
		return nil
	}
	block := call.Block().Instrs
	for i, instr := range block {
		if instr == call {
			return search(block[i+1:])
		}
	}
	return nil
}

// A condition is a value that an If has tested.
type condition struct {
	value ssa.Value
	is    bool
}

// conditions returns what holds wherever block runs.
func conditions(block *ssa.BasicBlock) []condition {
	var all []condition
	for b := block; b.Idom() != nil; b = b.Idom() {
		test, ok := b.Idom().Instrs[len(b.Idom().Instrs)-1].(*ssa.If)
		if !ok || len(b.Preds) != 1 {
			continue
		}
		all = append(all, condition{test.Cond, b == b.Idom().Succs[0]})
	}
	return all
}

// possible reports whether a condition may be true, or false, while there is an
// owner.
func possible(cond ssa.Value, is bool, failure ssa.Value, t *tracker, known []condition) bool {
	for _, k := range known {
		if k.is != is && flow.Same(k.value, cond) {
			return false
		}
	}
	not, ok := cond.(*ssa.UnOp)
	if ok && not.Op == token.NOT {
		return possible(not.X, !is, failure, t, known)
	}
	test, ok := cond.(*ssa.BinOp)
	if !ok || test.Op != token.EQL && test.Op != token.NEQ {
		return true
	}
	if c, ok := test.Y.(*ssa.Const); !ok || !c.IsNil() {
		return true
	}
	isNil := is == (test.Op == token.EQL)
	x := flow.Value(test.X)
	return !(failure != nil && x == flow.Value(failure) && !isNil) && !((t.alias[x] || t.alias[test.X]) && isNil)
}

// endsTest reports whether an instruction ends a test, by a method of testing.TB.
func endsTest(instr ssa.Instruction) bool {
	call, ok := instr.(ssa.CallInstruction)
	if !ok || !call.Common().IsInvoke() {
		return false
	}
	named, ok := types.Unalias(call.Common().Value.Type()).(*types.Named)
	if !ok || named.Obj().Pkg() == nil || named.Obj().Pkg().Path() != "testing" {
		return false
	}
	name := call.Common().Method.Name()
	return strings.HasPrefix(name, "Fatal") || strings.HasPrefix(name, "Skip") && name != "Skipped" || name == "FailNow"
}
