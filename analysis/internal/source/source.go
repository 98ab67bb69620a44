// Package source finds the words of diagnostics in the source of a package.
package source

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"

	"github.com/freehold-go/freehold/analysis/internal/offheap"
)

// Calls is the calls of a package, by the place of their left parenthesis, which
// is the place of a call in SSA form.
type Calls struct {
	fset *token.FileSet
	at   map[token.Pos]*ast.CallExpr
}

// Of returns the calls of a package.
func Of(pass *analysis.Pass) Calls {
	c := Calls{pass.Fset, map[token.Pos]*ast.CallExpr{}}
	for _, f := range pass.Files {
		ast.Inspect(f, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				c.at[call.Lparen] = call
			}
			return true
		})
	}
	return c
}

// Find returns the source of a call, or nil if it has none.
func (c Calls) Find(call ssa.CallInstruction) *ast.CallExpr { return c.at[call.Common().Pos()] }

// Name returns the expression of an argument or of the receiver of a call, or
// other if the call does not have it or the expression is long.
func (c Calls) Name(call offheap.Call, v ssa.Value, other string) string {
	expr := c.Find(call.Instr)
	if expr == nil || v == nil {
		return other
	}
	var of ast.Expr
	if i := slices.Index(call.Args, v); i >= 0 && i < len(expr.Args) {
		of = expr.Args[i]
	} else if sel, ok := ast.Unparen(expr.Fun).(*ast.SelectorExpr); ok && v == call.Recv {
		of = sel.X
	}
	switch of.(type) {
	case *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr, *ast.SliceExpr:
		return types.ExprString(of)
	}
	return other
}

// Text returns what a call calls, as it is written: "heap.Close".
func (c Calls) Text(call ssa.CallInstruction) string {
	if expr := c.Find(call); expr != nil {
		switch fun := ast.Unparen(expr.Fun).(type) {
		case *ast.Ident, *ast.SelectorExpr:
			return types.ExprString(fun)
		case *ast.IndexExpr:
			return types.ExprString(fun.X)
		case *ast.IndexListExpr:
			return types.ExprString(fun.X)
		}
	}
	return "a call"
}

// Line returns where pos is: "line 12".
func (c Calls) Line(pos token.Pos) string { return fmt.Sprintf("line %d", c.fset.Position(pos).Line) }
