// Instructions: what a function or a package does, in the order of its source.

package flow

import (
	"iter"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ssa"
)

// Instructions returns the instructions of a function, block by block.
func Instructions(fn *ssa.Function) iter.Seq[ssa.Instruction] {
	return func(yield func(ssa.Instruction) bool) {
		for _, b := range fn.Blocks {
			if !each(b.Instrs, yield) {
				return
			}
		}
	}
}

// CallsIn returns the calls in a function: made there, deferred or in a goroutine.
func CallsIn(fn *ssa.Function) iter.Seq[ssa.CallInstruction] {
	return func(yield func(ssa.CallInstruction) bool) {
		for instr := range Instructions(fn) {
			if call, ok := instr.(ssa.CallInstruction); ok && !yield(call) {
				return
			}
		}
	}
}

// Calls returns the calls in all [Functions] of a package.
func Calls(pass *analysis.Pass) iter.Seq[ssa.CallInstruction] {
	return func(yield func(ssa.CallInstruction) bool) {
		for _, fn := range Functions(pass) {
			for call := range CallsIn(fn) {
				if !yield(call) {
					return
				}
			}
		}
	}
}
