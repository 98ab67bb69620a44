package flow

import (
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/buildssa"
	"golang.org/x/tools/go/ssa"

	"github.com/freehold-go/freehold/analysis/internal/offheap"
)

// Functions returns the functions of a package and all function literals, those of
// package-level variables too. It leaves out literals that are passed to a function
// of the package that recovers: tests make mistakes in them on purpose. There are
// none if the package has nothing to do with freehold.
func Functions(pass *analysis.Pass) []*ssa.Function {
	if !offheap.Uses(pass.Pkg) {
		return nil
	}
	built := pass.ResultOf[buildssa.Analyzer].(*buildssa.SSA)
	all := slices.Clone(built.SrcFuncs)
	var add func(fn *ssa.Function)
	add = func(fn *ssa.Function) {
		for _, literal := range fn.AnonFuncs {
			all = append(all, literal)
			add(literal)
		}
	}
	if init := built.Pkg.Func("init"); init != nil {
		add(init)
	}
	return slices.DeleteFunc(all, mayPanic)
}

// mayPanic reports whether a function literal is an argument of a call of a function
// that recovers.
func mayPanic(literal *ssa.Function) bool {
	if literal.Parent() == nil {
		return false
	}
	for call := range CallsIn(literal.Parent()) {
		if call.Common().StaticCallee() == nil || !recovers(call.Common().StaticCallee()) {
			continue
		}
		for _, v := range call.Common().Args {
			if closure, ok := v.(*ssa.MakeClosure); ok {
				v = closure.Fn
			}
			if v == literal {
				return true
			}
		}
	}
	return false
}
