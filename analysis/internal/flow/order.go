// Order: dominance of instructions, and the conditions under which they run.

package flow

import (
	"go/token"
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

// index returns an instruction's index in its block.
func index(instr ssa.Instruction) int { return slices.Index(instr.Block().Instrs, instr) }

// Between returns the instructions that may run after from and before to.
func Between(from, to ssa.Instruction) []ssa.Instruction {
	first, last := from.Block(), to.Block()
	if first == last && index(from) < index(to) {
		return first.Instrs[index(from)+1 : index(to)]
	}
	all := slices.Concat(first.Instrs[index(from)+1:], last.Instrs[:index(to)])
	behind := reach(last, func(b *ssa.BasicBlock) []*ssa.BasicBlock { return b.Preds })
	for b := range reach(first, successors) {
		if behind[b] && b != first && b != last {
			all = append(all, b.Instrs...)
		}
	}
	return all
}

// After returns the instructions that may run after from.
func After(from ssa.Instruction) []ssa.Instruction {
	all := slices.Clone(from.Block().Instrs[index(from)+1:])
	for b := range reach(from.Block(), successors) {
		all = append(all, b.Instrs...)
	}
	return all
}

func successors(b *ssa.BasicBlock) []*ssa.BasicBlock { return b.Succs }

// reach returns the blocks that are one step or more from a block.
func reach(from *ssa.BasicBlock, next func(*ssa.BasicBlock) []*ssa.BasicBlock) map[*ssa.BasicBlock]bool {
	found := map[*ssa.BasicBlock]bool{}
	for todo := []*ssa.BasicBlock{from}; len(todo) > 0; todo = todo[1:] {
		for _, n := range next(todo[0]) {
			if !found[n] {
				found[n] = true
				todo = append(todo, n)
			}
		}
	}
	return found
}

// returns returns the return instructions of a function.
func returns(fn *ssa.Function) (all []*ssa.Return) {
	for instr := range Instructions(fn) {
		if end, ok := instr.(*ssa.Return); ok {
			all = append(all, end)
		}
	}
	return all
}

// always reports whether every return of instr's function comes after instr.
func always(instr ssa.Instruction) bool {
	ends := returns(instr.Parent())
	return len(ends) > 0 && !slices.ContainsFunc(ends, func(end *ssa.Return) bool { return !Dominates(instr, end) })
}

// A Condition says that an If has found a value true or false.
type Condition struct {
	Value ssa.Value
	Is    bool
}

// Conditions returns the conditions that hold whenever block runs.
func Conditions(block *ssa.BasicBlock) (all []Condition) {
	for b := block; b.Idom() != nil; b = b.Idom() {
		if test, ok := b.Idom().Instrs[len(b.Idom().Instrs)-1].(*ssa.If); ok && len(b.Preds) == 1 {
			all = append(all, Condition{test.Cond, b == b.Idom().Succs[0]}.plain())
		}
	}
	return all
}

// plain returns a condition without negations.
func (c Condition) plain() Condition {
	if not, ok := c.Value.(*ssa.UnOp); ok && not.Op == token.NOT {
		return Condition{not.X, !c.Is}.plain()
	}
	return c
}

// Nil returns the value that a condition compares with nil, and whether the value is nil.
func (c Condition) Nil() (v ssa.Value, is, ok bool) {
	c = c.plain()
	test, ok := c.Value.(*ssa.BinOp)
	if !ok || test.Op != token.EQL && test.Op != token.NEQ || !IsNil(test.Y) {
		return nil, false, false
	}
	return test.X, c.Is == (test.Op == token.EQL), true
}

// Contradicts reports whether the two conditions cannot both hold.
func (c Condition) Contradicts(other Condition) bool {
	c, other = c.plain(), other.plain()
	return c.Is != other.Is && Same(c.Value, other.Value)
}

// IsNil reports whether v is the constant nil.
func IsNil(v ssa.Value) bool {
	c, ok := Value(v).(*ssa.Const)
	return ok && c.IsNil()
}
