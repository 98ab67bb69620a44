// Loans that are kept.

package escape

import (
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/freehold-go/freehold/analysis/internal/flow"
	"github.com/freehold-go/freehold/analysis/internal/offheap"
)

// reportKept reports memory that outlives the function that it is lent to.
func reportKept(pass *flow.Pass, l flow.Loan) {
	end := "call"
	if l.Each {
		end = "iteration"
	}
	for instr := range flow.Instructions(l.To) {
		for _, use := range leaves(instr) {
			if l.Has(use.Value) && outlives(l, use, instr) {
				pass.Reportf(use.Pos(instr), "memory of %s is %s and outlives the %s; keep a copy", l.Of, use.How, end)
				break
			}
		}
	}
}

// leaves returns the uses by which an instruction gives memory to others.
func leaves(instr ssa.Instruction) (all []flow.Use) {
	switch instr := instr.(type) {
	case *ssa.Store:
		return []flow.Use{{Value: instr.Val, How: flow.Stored, Place: instr.Addr}}
	case *ssa.MapUpdate, *ssa.Send, *ssa.Return:
		return flow.Uses(instr)
	case *ssa.Select:
		for _, state := range instr.States {
			if state.Dir == types.SendOnly {
				all = append(all, flow.Use{Value: state.Send, How: flow.Sent, Place: state.Chan})
			}
		}
	case *ssa.Go:
		for _, v := range instr.Call.Args {
			all = append(all, flow.Use{Value: v, How: used})
		}
		if closure, ok := instr.Call.Value.(*ssa.MakeClosure); ok {
			for i, v := range closure.Bindings {
				if isRead(closure.Fn.(*ssa.Function).FreeVars[i], -1) {
					all = append(all, flow.Use{Value: v, How: used})
				}
			}
		}
	}
	return all
}

// used is how a go statement leaves memory with others.
const used = "used by a goroutine"

// outlives reports whether others may find the memory of a use after the function has
// returned.
func outlives(l flow.Loan, use flow.Use, instr ssa.Instruction) bool {
	after := flow.After(instr)
	switch use.How {
	case flow.Returned:
		return !l.Returns
	case used:
		return !mayWait(after)
	case flow.Sent:
		if mayWait(after) {
			return false
		}
	}
	if isReplaced(l, use, instr, after, l.To.AnonFuncs) {
		return false
	}
	switch root := root(use.Place).(type) {
	case *ssa.Parameter:
		return !l.Has(root) && !isReplaced(l, use, instr, flow.After(l.At), nil)
	case *ssa.Global:
		return !isReplaced(l, use, instr, flow.After(l.At), nil)
	case *ssa.FreeVar:
		return isReadAfter(l, root, use, instr)
	}
	return false
}

// isReplaced reports whether some instructions, or function literals, assign or clear the
// place that instr stores to.
func isReplaced(l flow.Loan, use flow.Use, instr ssa.Instruction, by []ssa.Instruction, literals []*ssa.Function) bool {
	_, isMap := instr.(*ssa.MapUpdate)
	replaces := func(other ssa.Instruction) bool {
		switch other := other.(type) {
		case *ssa.Store:
			place := other.Addr
			if field, ok := place.(*ssa.FieldAddr); ok && offheap.IsEntry(use.Value.Type()) && offheap.IsText(other.Val.Type()) {
				place = field.X // of Value, which is all that an Entry has
			}
			return other != instr && isSamePlace(place, use.Place) && (other.Parent() != l.To || !l.Has(other.Val))
		case ssa.CallInstruction:
			return isMap && (flow.Builtin(other) == "delete" || flow.Builtin(other) == "clear")
		}
		return false
	}
	for _, other := range by {
		if replaces(other) {
			return true
		}
		if call, ok := other.(ssa.CallInstruction); ok && call.Common().StaticCallee() != nil && anyIn(call.Common().StaticCallee(), 1, replaces) {
			return true
		}
	}
	return slices.ContainsFunc(literals, func(fn *ssa.Function) bool { return anyIn(fn, 1, replaces) })
}

// isReadAfter reports whether a variable of an enclosing function, which instr stores
// memory in, may be read after the function that the memory is lent to.
func isReadAfter(l flow.Loan, variable *ssa.FreeVar, use flow.Use, instr ssa.Instruction) bool {
	field := fieldOf(use.Place)
	for _, ref := range *variable.Referrers() { // by the next call of the function
		if reads(ref, variable, field) && !flow.Dominates(instr, ref) {
			return true
		}
	}
	at := l.At
	for fn := l.To; ; {
		closure := makes(fn)
		if closure == nil {
			return false
		}
		if at.Parent() != closure.Parent() {
			at = closure
		}
		binding := closure.Bindings[slices.Index(fn.FreeVars, variable)]
		if mayReach(at, binding, use.Place, field, fn) {
			return true
		}
		switch outer := binding.(type) {
		case *ssa.FreeVar:
			fn, variable, at = closure.Parent(), outer, closure
			continue
		case *ssa.Alloc:
			store := flow.OnlyStore(outer)
			return store != nil && flow.Base(use.Place) != variable && isOthers(store.Val) &&
				!isReplaced(l, use, instr, flow.After(l.At), nil)
		}
		return false
	}
}

// makes returns the instruction that makes a function literal, or nil.
func makes(fn *ssa.Function) *ssa.MakeClosure {
	if fn.Parent() == nil {
		return nil
	}
	for instr := range flow.Instructions(fn.Parent()) {
		if closure, ok := instr.(*ssa.MakeClosure); ok && closure.Fn == fn {
			return closure
		}
	}
	return nil
}

// fieldOf returns the index of the field that a place is in, of a variable or of the
// struct that the variable points to. It returns -1 if the place is in no field.
func fieldOf(place ssa.Value) int {
	field := -1
	for {
		switch v := place.(type) {
		case *ssa.FieldAddr:
			place, field = v.X, v.Field
		case *ssa.IndexAddr:
			place = v.X
		case *ssa.UnOp:
			place = v.X
		default:
			return field
		}
	}
}

// mayReach reports whether a read of a variable may come after an instruction, before the
// variable is assigned again. The function literal by is not looked into.
func mayReach(at ssa.Instruction, variable, place ssa.Value, field int, by *ssa.Function) bool {
	isRead := map[ssa.Instruction]bool{}
	for _, ref := range *variable.Referrers() {
		if closure, ok := ref.(*ssa.MakeClosure); ok && closure.Fn == by {
			continue
		}
		isRead[ref] = reads(ref, variable, field)
	}
	seen := map[*ssa.BasicBlock]bool{}
	var walk func(instrs []ssa.Instruction, block *ssa.BasicBlock) bool
	walk = func(instrs []ssa.Instruction, block *ssa.BasicBlock) bool {
		for _, instr := range instrs {
			if isRead[instr] {
				return true
			}
			if store, ok := instr.(*ssa.Store); ok && (store.Addr == variable || isSamePlace(store.Addr, place)) {
				return false
			}
		}
		return slices.ContainsFunc(block.Succs, func(next *ssa.BasicBlock) bool {
			if seen[next] {
				return false
			}
			seen[next] = true
			return walk(next.Instrs, next)
		})
	}
	block := at.Block()
	return walk(block.Instrs[slices.Index(block.Instrs, at)+1:], block)
}

// isRead reports whether memory is used that v refers to, by way of a field of v unless
// that is negative.
func isRead(v ssa.Value, field int) bool {
	return slices.ContainsFunc(*v.Referrers(), func(ref ssa.Instruction) bool { return reads(ref, v, field) })
}

// reads is isRead by one instruction. Storing more, asking for the length, comparing with
// nil and reading a number beside the memory read nothing.
func reads(instr ssa.Instruction, v ssa.Value, field int) bool {
	switch instr := instr.(type) {
	case *ssa.DebugRef:
		return false
	case *ssa.Store:
		return instr.Addr != v
	case *ssa.MapUpdate:
		return instr.Map != v
	case *ssa.Send:
		return instr.Chan != v
	case *ssa.BinOp:
		return !flow.IsNil(instr.X) && !flow.IsNil(instr.Y)
	case *ssa.FieldAddr:
		return (field < 0 || instr.Field == field) && !isNumber(instr.Type().Underlying().(*types.Pointer).Elem()) && isRead(instr, -1)
	case *ssa.UnOp:
		return instr.Op != token.MUL || isRead(instr, field)
	case *ssa.IndexAddr:
		return instr.X == v && (offheap.IsText(v.Type()) || isRead(instr, -1))
	case *ssa.Slice:
		n, ok := flow.Int(instr.High)
		return instr.High == nil || !ok || n != 0
	case *ssa.MakeClosure:
		i := slices.Index(instr.Bindings, v)
		return isRead(instr.Fn.(*ssa.Function).FreeVars[i], field)
	case *ssa.Call:
		switch flow.Builtin(instr) {
		case "len", "cap", "delete", "clear":
			return false
		case "append":
			return instr.Call.Args[0] != v
		}
	}
	return true
}

// isNumber reports whether t is a type of numbers or a bool.
func isNumber(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&(types.IsNumeric|types.IsBoolean) != 0
}
