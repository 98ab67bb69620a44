package flow

import (
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/buildssa"
	"golang.org/x/tools/go/ssa"

	"github.com/freehold-go/freehold/analysis/internal/offheap"
)

// Functions returns the functions of a package and all function literals, those of
// package-level variables too. There are none if the package has nothing to do with
// freehold.
func Functions(pass *analysis.Pass) []*ssa.Function {
	if !offheap.Uses(pass.Pkg) {
		return nil
	}
	built := pass.ResultOf[buildssa.Analyzer].(*buildssa.SSA)
	all := built.SrcFuncs
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
	return all
}
