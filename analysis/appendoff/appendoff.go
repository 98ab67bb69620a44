// Package appendoff defines an analyzer that reports off-heap slices which append
// moves to the Go heap.
package appendoff

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/ssa"

	"github.com/freehold-go/freehold/analysis/internal/flow"
	"github.com/freehold-go/freehold/analysis/internal/offheap"
)

const doc = `report off-heap slices that append moves to the Go heap

A block has no capacity beyond its length. So the built-in append copies it to the
Go heap. If the result is assigned to the same variable, the block is lost:

	xs, err := freehold.MakeSlice[int](heap, 100)
	xs = append(xs, 1)
	freehold.FreeSlice(heap, xs) // panics, and the block has leaked

Use freehold.Append. The analyzer reports append, slices.Insert and slices.Grow if
their result replaces the slice, or is freed or grown as a block. It does not report
slices that were cut or made with a capacity, since these have room, nor intended
copies: results that get a variable of their own.`

// Analyzer reports off-heap slices that append moves.
var Analyzer = flow.Analyzer("appendoff", doc, func(pass *flow.Pass, fn *ssa.Function) {
	for instr := range flow.CallsIn(fn) {
		call, ok := instr.(*ssa.Call)
		if !ok {
			continue
		}
		name := appends(call)
		if name == "" || !isFull(call.Call.Args[0], map[ssa.Value]bool{}) {
			continue
		}
		if at, expr := pass.Source(call); expr != nil && (replaces(at, expr) || isFreed(call, map[ssa.Value]bool{})) {
			pass.Reportf(call.Pos(), "%s moves %s, which is off-heap and full, to the Go heap; use freehold.Append", name, types.ExprString(expr.Args[0]))
		}
	}
})

// appends returns the name of the called function if the call adds elements to its first argument,
// or room for elements. Otherwise it returns "".
func appends(call *ssa.Call) string {
	name, adds := flow.Builtin(call), false
	if fn := offheap.Callee(&call.Call); fn != nil && fn.Pkg() != nil {
		name = fn.Pkg().Path() + "." + fn.Name()
	}
	switch args := call.Call.Args; name {
	case "append":
		adds = !isEmpty(args[1])
	case "slices.Insert":
		adds = !isEmpty(args[2])
	case "slices.Grow":
		n, _ := flow.Int(args[1])
		adds = n > 0
	}
	if !adds {
		return ""
	}
	return name
}

// isEmpty reports whether a list of variadic arguments is empty.
func isEmpty(v ssa.Value) bool {
	c, ok := v.(*ssa.Const)
	return ok && (c.IsNil() || c.Value != nil && c.Value.ExactString() == `""`)
}

// isFull reports whether v is an off-heap slice without room: a block as it was allocated, or in a
// loop either such a block or the result of append to it.
func isFull(v ssa.Value, seen map[ssa.Value]bool) bool {
	v = flow.Value(v)
	if phi, ok := v.(*ssa.Phi); ok {
		seen[phi] = true
		full := false
		for _, edge := range phi.Edges {
			edge = flow.Value(edge)
			if call, ok := edge.(*ssa.Call); ok && appends(call) != "" && flow.Value(call.Call.Args[0]) == phi {
				continue
			}
			if seen[edge] {
				continue
			}
			if !isFull(edge, seen) {
				return false
			}
			full = true
		}
		return full
	}
	block, ok := flow.BlockOf(v)
	if !ok || !block.Call.FillsBlock() {
		return false
	}
	if block.Size != nil {
		n, constant := flow.Int(block.Size)
		return !constant || n > 0
	}
	return true
}

// replaces reports whether the result of a call is assigned to its first argument.
func replaces(at inspector.Cursor, call *ast.CallExpr) bool {
	for at.ParentEdgeKind() == edge.ParenExpr_X {
		at = at.Parent()
	}
	if at.ParentEdgeKind() != edge.AssignStmt_Rhs {
		return false
	}
	assign := at.Parent().Node().(*ast.AssignStmt)
	to := assign.Lhs[at.ParentEdgeIndex()]
	return types.ExprString(to) == types.ExprString(call.Args[0])
}

// isFreed reports whether v is passed to a function that takes only blocks.
func isFreed(v ssa.Value, seen map[ssa.Value]bool) bool {
	if seen[v] {
		return false
	}
	seen[v] = true
	for _, ref := range *v.Referrers() {
		switch ref := ref.(type) {
		case *ssa.Phi:
			if isFreed(ref, seen) {
				return true
			}
		case ssa.CallInstruction:
			if end, ok := offheap.Of(ref).Ends(); ok && end.Block == v {
				return true
			}
			if call, ok := ref.(*ssa.Call); ok && appends(call) != "" && call.Call.Args[0] == v && isFreed(call, seen) {
				return true
			}
		}
	}
	return false
}
