// Passes: the traversal of a package's functions, and reports.

package flow

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"iter"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/buildssa"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/ssa"

	"github.com/freehold-go/freehold/analysis/internal/offheap"
)

// A Pass is an analyzer's pass over a package.
type Pass struct{ *analysis.Pass }

// Analyzer returns an analyzer that checks each function and function literal of a package, with
// the literals of package-level variables. It skips a literal that is passed to a function of the
// package that recovers: tests make mistakes in such literals on purpose. It skips packages that do
// not import freehold, directly or through others.
func Analyzer(name, doc string, check func(*Pass, *ssa.Function)) *analysis.Analyzer {
	run := func(pass *analysis.Pass) (any, error) {
		if offheap.Root(pass.Pkg) == nil {
			return nil, nil
		}
		built := pass.ResultOf[buildssa.Analyzer].(*buildssa.SSA)
		for _, fn := range slices.Concat(built.SrcFuncs, literals(built.Pkg.Func("init"))) {
			if !expectsPanic(fn) {
				check(&Pass{pass}, fn)
			}
		}
		return nil, nil
	}
	return &analysis.Analyzer{
		Name: name, Doc: doc, URL: "https://pkg.go.dev/github.com/freehold-go/freehold/analysis/" + name,
		Requires: []*analysis.Analyzer{buildssa.Analyzer, inspect.Analyzer}, Run: run,
	}
}

// literals returns the function literals in fn.
func literals(fn *ssa.Function) (all []*ssa.Function) {
	for _, literal := range fn.AnonFuncs {
		all = append(append(all, literal), literals(literal)...)
	}
	return all
}

// expectsPanic reports whether a function literal is passed to a function of the
// package that recovers.
func expectsPanic(literal *ssa.Function) bool {
	return literal.Parent() != nil && passesToRecover(literal.Parent(), func(v ssa.Value) bool {
		if closure, ok := v.(*ssa.MakeClosure); ok {
			v = closure.Fn
		}
		return v == literal
	})
}

// passesToRecover reports whether fn passes a value for which is returns true to a function of the
// package that recovers.
func passesToRecover(fn *ssa.Function, is func(ssa.Value) bool) bool {
	for call := range CallsIn(fn) {
		callee := call.Common().StaticCallee()
		if callee != nil && recovers(callee) && slices.ContainsFunc(call.Common().Args, is) {
			return true
		}
	}
	return false
}

// recovers reports whether fn, or a function literal in it, calls recover.
func recovers(fn *ssa.Function) bool {
	for call := range CallsIn(fn) {
		if Builtin(call) == "recover" {
			return true
		}
	}
	return slices.ContainsFunc(fn.AnonFuncs, recovers)
}

// Instructions returns the instructions of a function, block by block.
func Instructions(fn *ssa.Function) iter.Seq[ssa.Instruction] {
	return func(yield func(ssa.Instruction) bool) {
		for _, b := range fn.Blocks {
			for _, instr := range b.Instrs {
				if !yield(instr) {
					return
				}
			}
		}
	}
}

// CallsIn returns the calls in a function, with deferred calls and go statements.
func CallsIn(fn *ssa.Function) iter.Seq[ssa.CallInstruction] {
	return func(yield func(ssa.CallInstruction) bool) {
		for instr := range Instructions(fn) {
			if call, ok := instr.(ssa.CallInstruction); ok && !yield(call) {
				return
			}
		}
	}
}

// Source returns the source of a call, if it has one.
func (p *Pass) Source(call ssa.CallInstruction) (at inspector.Cursor, expr *ast.CallExpr) {
	paren := call.Common().Pos() // the left parenthesis
	if !paren.IsValid() {
		return at, nil
	}
	at, _ = p.ResultOf[inspect.Analyzer].(*inspector.Inspector).Root().FindByPos(paren, paren+1)
	expr, _ = at.Node().(*ast.CallExpr)
	return at, expr
}

// Name returns the source expression of v, an argument or the receiver of a call. It returns other
// if v is neither or the expression is long.
func (p *Pass) Name(call offheap.Call, v ssa.Value, other string) string {
	_, expr := p.Source(call.Instr)
	if expr == nil {
		return other
	}
	var of ast.Expr
	if i := slices.Index(call.Args, v); i >= 0 && i < len(expr.Args) {
		of = expr.Args[i]
	} else if sel, ok := ast.Unparen(expr.Fun).(*ast.SelectorExpr); ok && v == call.Recv {
		of = sel.X
	}
	switch of.(type) {
	case *ast.Ident, *ast.SelectorExpr, *ast.IndexExpr, *ast.SliceExpr, *ast.UnaryExpr, *ast.BasicLit, *ast.CallExpr:
		if text := types.ExprString(of); len(text) <= 40 {
			return text
		}
	}
	return other
}

// Text returns the called function as it is written, such as "heap.Close".
func (p *Pass) Text(call ssa.CallInstruction) string {
	if _, expr := p.Source(call); expr != nil {
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

// Line returns the line of pos, such as "line 12".
func (p *Pass) Line(pos token.Pos) string { return fmt.Sprintf("line %d", p.Fset.Position(pos).Line) }

// ReportWith reports a diagnostic at pos. If related is a valid position, the diagnostic refers to
// it, with the text what.
func (p *Pass) ReportWith(related token.Pos, what string, pos token.Pos, message string) {
	d := analysis.Diagnostic{Pos: pos, Message: message}
	if related.IsValid() {
		d.Related = []analysis.RelatedInformation{{Pos: related, Message: what}}
	}
	p.Report(d)
}
