// Uses: the accesses of an instruction to memory.

package flow

import (
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/freehold-go/freehold/analysis/internal/offheap"
)

// A Use is an instruction's use of the memory to which Value refers. Taking the length or the
// address of a block is not a use.
type Use struct {
	Value ssa.Value
	How   string    // a participle, such as "read"
	Place ssa.Value // the address, map or channel for Stored and Sent
}

// Pos returns the position of a use by instr, or a position nearby if it has none.
func (u Use) Pos(instr ssa.Instruction) token.Pos {
	if closure, ok := instr.(*ssa.MakeClosure); ok {
		return closure.Fn.Pos()
	}
	if pos := instr.Pos(); pos.IsValid() {
		return pos
	}
	return u.Value.Pos()
}

// The values of How for uses that make the memory visible outside of the function.
const (
	Returned = "returned" // to the caller
	Stored   = "stored"   // in a variable, a field or a map
	Sent     = "sent"     // to a channel
)

// Uses returns the uses of memory by an instruction.
func Uses(instr ssa.Instruction) []Use { return uses(instr, maxDepth) }

func uses(instr ssa.Instruction, depth int) (all []Use) {
	one := func(v ssa.Value, how string) []Use { return []Use{{Value: v, How: how}} }
	switch instr := instr.(type) {
	case *ssa.UnOp:
		if instr.Op == token.MUL && !isVariable(instr.X) {
			return one(instr.X, "read")
		}
	case *ssa.Store:
		if isVariable(instr.Addr) {
			if _, global := instr.Addr.(*ssa.Global); global {
				return []Use{{instr.Val, Stored, instr.Addr}}
			}
			return nil
		}
		local, isLocal := Base(instr.Addr).(*ssa.Alloc)
		if isLocal && local.Comment == "varargs" { // arguments of a variadic function
			if _, ok := Value(instr.Val).Type().Underlying().(*types.Pointer); ok {
				return nil // a pointer that is printed
			}
			return one(instr.Val, "passed on")
		}
		if isLocal {
			return one(instr.Addr, "written")
		}
		return append(one(instr.Addr, "written"), Use{instr.Val, Stored, instr.Addr})
	case *ssa.Index:
		if offheap.IsString(instr.X.Type()) {
			return one(instr.X, "read")
		}
	case *ssa.Lookup:
		return one(instr.Index, "read")
	case *ssa.MapUpdate:
		return []Use{{instr.Key, Stored, instr.Map}, {instr.Value, Stored, instr.Map}}
	case *ssa.Range:
		return one(instr.X, "read")
	case *ssa.BinOp:
		if offheap.IsString(instr.X.Type()) {
			return append(one(instr.X, "read"), one(instr.Y, "read")...)
		}
	case *ssa.Convert:
		if !isAddress(instr.X.Type()) {
			return one(instr.X, "read")
		}
	case *ssa.Send:
		return []Use{{instr.X, Sent, instr.Chan}}
	case *ssa.Return:
		for _, v := range instr.Results {
			all = append(all, one(v, Returned)...)
		}
	case *ssa.MakeClosure:
		return captures(instr, depth)
	case ssa.CallInstruction:
		return callUses(instr, depth)
	}
	return all
}

// isVariable reports whether addr is the address of a whole variable.
func isVariable(addr ssa.Value) bool {
	switch addr.(type) {
	case *ssa.Alloc, *ssa.Global, *ssa.FreeVar:
		return true
	}
	return false
}

// callUses returns the uses by a call, except for a block that it frees.
func callUses(call ssa.CallInstruction, depth int) (all []Use) {
	args := call.Common().Args
	switch name := Builtin(call); name {
	case "":
	case "append", "copy", "clear", "print", "println":
		for _, v := range args {
			all = append(all, Use{Value: v, How: "used by " + name})
		}
		return all
	default:
		return nil
	}
	c := offheap.Of(call)
	end, _ := c.Ends()
	name, callee := "a function", offheap.Callee(call.Common())
	if callee != nil {
		name = callee.Name()
	}
	if c.Name != "" && !c.Touches() || callee != nil && callee.Pkg() != nil && callee.Pkg().Path() == "runtime" { // KeepAlive
		return nil
	}
	for i, v := range args {
		freed := v == end.Block && !end.Replaced
		if !freed && (c.Name != "" || touches(call.Common().StaticCallee(), i, depth)) {
			all = append(all, Use{Value: v, How: "passed to " + name})
		}
	}
	return all
}

// touches reports whether fn may use the memory of its nth argument. It is true for functions
// without a body in this package.
func touches(fn *ssa.Function, n, depth int) bool {
	if fn == nil || len(fn.Blocks) == 0 || depth == 0 || n >= len(fn.Params) {
		return true
	}
	param := fn.Params[n]
	return types.IsInterface(param.Type()) || usesAny(fn, func(v ssa.Value) bool { return Base(v) == param }, depth-1)
}

// captures returns the captured variables whose memory a function literal uses. It returns none if
// the enclosing function passes functions to one that recovers: then literals may have mistakes on
// purpose.
func captures(closure *ssa.MakeClosure, depth int) (all []Use) {
	fn := closure.Fn.(*ssa.Function)
	isFunction := func(v ssa.Value) bool { _, ok := v.Type().Underlying().(*types.Signature); return ok }
	if depth == 0 || passesToRecover(closure.Parent(), isFunction) {
		return nil
	}
	for i, binding := range closure.Bindings {
		cell, ok := binding.(*ssa.Alloc)
		if !ok {
			continue
		}
		store := OnlyStore(cell)
		if store == nil || !Dominates(store, closure) {
			continue
		}
		isLoad := func(v ssa.Value) bool {
			load, ok := Base(v).(*ssa.UnOp)
			return ok && load.X == fn.FreeVars[i]
		}
		if usesAny(fn, isLoad, depth-1) {
			all = append(all, Use{Value: store.Val, How: "captured by a function"})
		}
	}
	return all
}

// usesAny reports whether fn uses or frees memory of a value for which is returns true.
func usesAny(fn *ssa.Function, is func(ssa.Value) bool, depth int) bool {
	for instr := range Instructions(fn) {
		if slices.ContainsFunc(uses(instr, depth), func(u Use) bool { return is(u.Value) }) {
			return true
		}
		if call, ok := instr.(ssa.CallInstruction); ok {
			if end, ok := offheap.Of(call).Ends(); ok && end.Block != nil && is(end.Block) {
				return true
			}
		}
	}
	return false
}
