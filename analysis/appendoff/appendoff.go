// Package appendoff defines an analyzer that reports off-heap slices which append
// moves to the Go heap.
package appendoff

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/buildssa"
	"golang.org/x/tools/go/ssa"

	"github.com/freehold-go/freehold/analysis/internal/flow"
	"github.com/freehold-go/freehold/analysis/internal/offheap"
	"github.com/freehold-go/freehold/analysis/internal/source"
)

const doc = `report off-heap slices that append moves to the Go heap

A block has no capacity beyond its length. The built-in append therefore copies it
to the Go heap, and a variable that is assigned the result has lost the block:

	xs, err := freehold.MakeSlice[int](heap, 100)
	xs = append(xs, 1)
	freehold.FreeSlice(heap, xs) // panics, and the block has leaked

Use freehold.Append. Reported are append, slices.Insert and slices.Grow if their
result replaces the slice, or is freed or grown as a block. Not reported are slices
that were cut or made with a capacity, which have room, and copies that are meant:
a result with a variable of its own.`

// Analyzer reports off-heap slices that append moves.
var Analyzer = &analysis.Analyzer{
	Name:     "appendoff",
	Doc:      doc,
	URL:      "https://pkg.go.dev/github.com/freehold-go/freehold/analysis/appendoff",
	Requires: []*analysis.Analyzer{buildssa.Analyzer},
	Run:      run,
}

func run(pass *analysis.Pass) (any, error) {
	calls := source.Of(pass)
	var replaced map[*ast.CallExpr]bool
	for instr := range flow.Calls(pass) {
		call, ok := instr.(*ssa.Call)
		if !ok {
			continue
		}
		name := appends(call)
		if name == "" || !isFull(call.Call.Args[0], map[ssa.Value]bool{}) {
			continue
		}
		if replaced == nil {
			replaced = replacing(pass)
		}
		if expr := calls.Find(call); replaced[expr] || isFreed(call, map[ssa.Value]bool{}) {
			what := "the slice"
			if expr != nil {
				what = types.ExprString(expr.Args[0])
			}
			pass.Reportf(call.Pos(), "%s moves %s, which is off-heap and full, to the Go heap; use freehold.Append", name, what)
		}
	}
	return nil, nil
}

// appends returns the name of the function if a call adds elements to its first
// argument, or room for them, else "".
func appends(call *ssa.Call) string {
	if b, ok := call.Call.Value.(*ssa.Builtin); ok {
		if b.Name() == "append" && !isEmpty(call.Call.Args[1]) {
			return "append"
		}
		return ""
	}
	fn := flow.Callee(call)
	if fn == nil || fn.Pkg() == nil || fn.Pkg().Path() != "slices" {
		return ""
	}
	switch fn.Name() {
	case "Insert":
		if !isEmpty(call.Call.Args[2]) {
			return "slices.Insert"
		}
	case "Grow":
		if n, ok := flow.Int(call.Call.Args[1]); ok && n > 0 {
			return "slices.Grow"
		}
	}
	return ""
}

// isEmpty reports whether a list of arguments has none.
func isEmpty(v ssa.Value) bool {
	c, ok := v.(*ssa.Const)
	return ok && (c.IsNil() || c.Value != nil && c.Value.ExactString() == `""`)
}

// isFull reports whether v is an off-heap slice without room: a block as it was
// allocated or, in a loop, that or what append has made of it.
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

// replacing returns the calls whose result is assigned to their first argument.
func replacing(pass *analysis.Pass) map[*ast.CallExpr]bool {
	all := map[*ast.CallExpr]bool{}
	for _, f := range pass.Files {
		ast.Inspect(f, func(n ast.Node) bool {
			assign, ok := n.(*ast.AssignStmt)
			if !ok || len(assign.Lhs) != len(assign.Rhs) {
				return true
			}
			for i, rhs := range assign.Rhs {
				call, ok := ast.Unparen(rhs).(*ast.CallExpr)
				if ok && len(call.Args) > 0 && types.ExprString(assign.Lhs[i]) == types.ExprString(call.Args[0]) {
					all[call] = true
				}
			}
			return true
		})
	}
	return all
}

// isFreed reports whether v goes to a function that takes blocks only.
func isFreed(v ssa.Value, seen map[ssa.Value]bool) bool {
	if seen[v] || v.Referrers() == nil {
		return false
	}
	seen[v] = true
	for _, ref := range *v.Referrers() {
		switch ref := ref.(type) {
		case *ssa.Phi:
			if isFreed(ref, seen) {
				return true
			}
		case *ssa.Call:
			if appends(ref) != "" && ref.Call.Args[0] == v && isFreed(ref, seen) {
				return true
			}
			if takes(ref, v) {
				return true
			}
		case ssa.CallInstruction:
			if takes(ref, v) {
				return true
			}
		}
	}
	return false
}

func takes(call ssa.CallInstruction, v ssa.Value) bool {
	c := offheap.Of(call)
	if block, _, ok := c.Frees(); ok && block == v {
		return true
	}
	block, _, ok := c.Replaces()
	return ok && block == v
}
