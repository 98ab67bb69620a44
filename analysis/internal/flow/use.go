// Uses: what an instruction does with memory.

package flow

import (
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/freehold-go/freehold/analysis/internal/offheap"
)

// A Use is an instruction's use of the memory that Value refers to. Asking for the
// length or the address of a block is none.
type Use struct {
	Value ssa.Value
	How   string // a participle: "read", "returned"
	Kind  Kind
}

// Kind is where a use leaves the memory.
type Kind int

const (
	Access   Kind = iota // nowhere: it is read or written here
	Passed               // with a function
	Returned             // with the caller
	Stored               // in a variable, a field or a map that others see
	Sent                 // in a channel
)

// Uses returns the uses of memory by an instruction.
func Uses(instr ssa.Instruction) []Use { return uses(instr, maxDepth) }

func uses(instr ssa.Instruction, depth int) []Use {
	one := func(v ssa.Value, how string, kind Kind) []Use { return []Use{{v, how, kind}} }
	switch instr := instr.(type) {
	case *ssa.UnOp:
		if instr.Op == token.MUL && !isVariable(instr.X) {
			return one(instr.X, "read", Access)
		}
	case *ssa.Store:
		if isVariable(instr.Addr) {
			if _, global := instr.Addr.(*ssa.Global); global {
				return one(instr.Val, "stored", Stored)
			}
			return nil
		}
		if varargs, isIndex := instr.Addr.(*ssa.IndexAddr); isIndex && isVarargs(varargs.X) {
			if _, ok := Value(instr.Val).Type().Underlying().(*types.Pointer); ok {
				return nil // a pointer that is printed
			}
			return one(instr.Val, "passed on", Passed)
		}
		written := Use{instr.Addr, "written", Access}
		if _, local := Base(instr.Addr).(*ssa.Alloc); local {
			return []Use{written}
		}
		return []Use{written, {instr.Val, "stored", Stored}}
	case *ssa.Index:
		if IsString(instr.X) {
			return one(instr.X, "read", Access)
		}
	case *ssa.Lookup:
		if IsString(instr.X) {
			return one(instr.X, "read", Access)
		}
		return one(instr.Index, "read", Access)
	case *ssa.MapUpdate:
		return []Use{{instr.Key, "stored", Stored}, {instr.Value, "stored", Stored}}
	case *ssa.Range:
		return one(instr.X, "read", Access)
	case *ssa.BinOp:
		if IsString(instr.X) {
			return []Use{{instr.X, "read", Access}, {instr.Y, "read", Access}}
		}
	case *ssa.Convert:
		if !isAddress(instr.X.Type()) {
			return one(instr.X, "read", Access)
		}
	case *ssa.Send:
		return one(instr.X, "sent", Sent)
	case *ssa.Return:
		var uses []Use
		for _, v := range instr.Results {
			uses = append(uses, Use{v, "returned", Returned})
		}
		return uses
	case *ssa.MakeClosure:
		return captures(instr, depth)
	case ssa.CallInstruction:
		return callUses(instr, depth)
	}
	return nil
}

// isVariable reports whether an address is that of a variable as a whole.
func isVariable(addr ssa.Value) bool {
	switch addr.(type) {
	case *ssa.Alloc, *ssa.Global, *ssa.FreeVar:
		return true
	}
	return false
}

// isVarargs reports whether v is the array that arguments of a variadic function
// are put into.
func isVarargs(v ssa.Value) bool {
	a, ok := v.(*ssa.Alloc)
	return ok && a.Comment == "varargs"
}

// IsString reports whether v is a string.
func IsString(v ssa.Value) bool {
	b, ok := v.Type().Underlying().(*types.Basic)
	return ok && b.Info()&types.IsString != 0
}

// callUses returns the uses by a call, except for what it frees.
func callUses(call ssa.CallInstruction, depth int) []Use {
	var uses []Use
	args := call.Common().Args
	if name := builtin(call); name != "" {
		switch name {
		case "append", "copy", "clear", "print", "println":
			for _, v := range args {
				uses = append(uses, Use{v, "used by " + name, Access})
			}
		}
		return uses
	}
	c := offheap.Of(call)
	if c.Name != "" && !c.Touches() || c.Name == "" && ignores(call) {
		return nil
	}
	freed, _, _ := c.Frees()
	retired, _, _ := c.Retires()
	for i, v := range args {
		if v == freed || v == retired || c.Name == "" && !touches(call.Common().StaticCallee(), i, depth) {
			continue
		}
		uses = append(uses, Use{v, "passed to " + calleeName(call), Passed})
	}
	return uses
}

// ignores reports whether a call of another's function does not look at the
// memory of its arguments.
func ignores(call ssa.CallInstruction) bool {
	fn := Callee(call)
	return fn != nil && fn.Pkg() != nil && fn.Pkg().Path() == "runtime" // KeepAlive, SetFinalizer
}

// Callee returns the function that a call names, or nil.
func Callee(call ssa.CallInstruction) *types.Func { return offheap.Callee(call.Common()) }

func calleeName(call ssa.CallInstruction) string {
	if fn := Callee(call); fn != nil {
		return fn.Name()
	}
	return "a function"
}

// touches reports whether fn may use the memory of its nth argument. It is true for
// functions whose body is not of this package.
func touches(fn *ssa.Function, n, depth int) bool {
	if fn == nil || len(fn.Blocks) == 0 || depth == 0 || n >= len(fn.Params) {
		return true
	}
	param := fn.Params[n]
	if _, ok := param.Type().Underlying().(*types.Interface); ok {
		return true
	}
	return usesAny(fn, func(v ssa.Value) bool { return Base(v) == param }, depth-1)
}

// captures returns the variables that a function literal captures and whose memory
// it uses.
func captures(closure *ssa.MakeClosure, depth int) []Use {
	var uses []Use
	fn := closure.Fn.(*ssa.Function)
	if depth == 0 || expectsPanics(closure.Parent()) {
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
		isIt := func(v ssa.Value) bool {
			load, ok := Base(v).(*ssa.UnOp)
			return ok && load.X == fn.FreeVars[i]
		}
		if !usesAny(fn, isIt, depth-1) {
			continue
		}
		uses = append(uses, Use{store.Val, "captured by a function", Access})
	}
	return uses
}

// usesAny reports whether fn uses or frees memory that is asked for.
func usesAny(fn *ssa.Function, is func(ssa.Value) bool, depth int) bool {
	for instr := range Instructions(fn) {
		for _, use := range uses(instr, depth) {
			if is(use.Value) {
				return true
			}
		}
		if call, ok := instr.(ssa.CallInstruction); ok {
			if block, _, ok := offheap.Of(call).Frees(); ok && is(block) {
				return true
			}
		}
	}
	return false
}

// expectsPanics reports whether fn passes function literals to a function of the
// package that recovers: they may make mistakes on purpose.
func expectsPanics(fn *ssa.Function) bool {
	for call := range CallsIn(fn) {
		callee := call.Common().StaticCallee()
		if callee == nil || !recovers(callee) {
			continue
		}
		for _, v := range call.Common().Args {
			if _, ok := v.Type().Underlying().(*types.Signature); ok {
				return true
			}
		}
	}
	return false
}

// recovers reports whether fn, or a function literal in it, calls recover.
func recovers(fn *ssa.Function) bool {
	for call := range CallsIn(fn) {
		if builtin(call) == "recover" {
			return true
		}
	}
	return slices.ContainsFunc(fn.AnonFuncs, recovers)
}
