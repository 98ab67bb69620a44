// Order: which instructions run before which.

package flow

import (
	"iter"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// Dominates reports whether every path to b has run a before. An instruction does
// not dominate itself.
func Dominates(a, b ssa.Instruction) bool {
	if a.Block() == b.Block() {
		return a != b && index(a) < index(b)
	}
	return a.Parent() == b.Parent() && a.Block().Dominates(b.Block())
}

// index returns an instruction's place in its block.
func index(instr ssa.Instruction) int { return slices.Index(instr.Block().Instrs, instr) }

// Between returns the instructions that may run after from and before to.
func Between(from, to ssa.Instruction) iter.Seq[ssa.Instruction] {
	return func(yield func(ssa.Instruction) bool) {
		first, last := from.Block(), to.Block()
		if first == last && index(from) < index(to) {
			each(first.Instrs[index(from)+1:index(to)], yield)
			return
		}
		ahead := reach(first, func(b *ssa.BasicBlock) []*ssa.BasicBlock { return b.Succs })
		behind := reach(last, func(b *ssa.BasicBlock) []*ssa.BasicBlock { return b.Preds })
		if !each(first.Instrs[index(from)+1:], yield) || !each(last.Instrs[:index(to)], yield) {
			return
		}
		for b := range ahead {
			if behind[b] && b != first && b != last && !each(b.Instrs, yield) {
				return
			}
		}
	}
}

// After returns the instructions that may run after from.
func After(from ssa.Instruction) iter.Seq[ssa.Instruction] {
	return func(yield func(ssa.Instruction) bool) {
		block := from.Block()
		if !each(block.Instrs[index(from)+1:], yield) {
			return
		}
		for b := range reach(block, func(b *ssa.BasicBlock) []*ssa.BasicBlock { return b.Succs }) {
			if !each(b.Instrs, yield) {
				return
			}
		}
	}
}

func each(instrs []ssa.Instruction, yield func(ssa.Instruction) bool) bool {
	for _, instr := range instrs {
		if !yield(instr) {
			return false
		}
	}
	return true
}

// reach returns the blocks that one step or more leads to.
func reach(from *ssa.BasicBlock, next func(*ssa.BasicBlock) []*ssa.BasicBlock) map[*ssa.BasicBlock]bool {
	found := map[*ssa.BasicBlock]bool{}
	todo := []*ssa.BasicBlock{from}
	for len(todo) > 0 {
		b := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, n := range next(b) {
			if !found[n] {
				found[n] = true
				todo = append(todo, n)
			}
		}
	}
	return found
}

// Always reports whether every way out of instr's function runs it, other than
// by a panic.
func Always(instr ssa.Instruction) bool {
	returns := false
	for _, b := range instr.Parent().Blocks {
		if end, ok := b.Instrs[len(b.Instrs)-1].(*ssa.Return); ok {
			returns = true
			if !Dominates(instr, end) {
				return false
			}
		}
	}
	return returns
}
