// Package flow follows blocks and owners through the SSA form of a function.
//
//	value  the same pointer, slice or interface, through variables and conversions
//	base   the block that contains a value or that it views
//	key    equal for two loads of one variable or field
//
// It follows a variable that closures share if the variable is assigned once. It follows fields and
// other variables between two instructions if nothing in between can change them.
package flow

import (
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/freehold-go/freehold/analysis/internal/offheap"
)

// maxSteps is the most steps of the search for a value's origin.
const maxSteps = 64

// Value returns the origin of v, through conversions that keep the value, [freehold.Must], and
// variables that are assigned once.
func Value(v ssa.Value) ssa.Value {
	for range maxSteps {
		next := v
		switch v := v.(type) {
		case *ssa.ChangeType, *ssa.ChangeInterface, *ssa.MakeInterface:
			next = operand(v)
		case *ssa.TypeAssert:
			if !v.CommaOk {
				next = v.X
			}
		case *ssa.Call:
			if c := offheap.Of(v); c.Name == "freehold.Must" {
				next = c.Args[0]
			}
		case *ssa.UnOp:
			if cell, ok := v.X.(*ssa.Alloc); ok && v.Op == token.MUL {
				if store := OnlyStore(cell); store != nil && Dominates(store, v) {
					next = store.Val
				} else if store := lastStore(cell, v); store != nil {
					next = store.Val
				}
			}
		case *ssa.Phi:
			next = onlyEdge(v)
		}
		if next == v {
			return v
		}
		v = next
	}
	return v
}

// onlyEdge returns the only value of a Phi, or the Phi itself if it has several.
func onlyEdge(phi *ssa.Phi) ssa.Value {
	var only ssa.Value
	for _, edge := range phi.Edges {
		if edge == phi || edge == only {
			continue
		}
		if only != nil {
			return phi
		}
		only = edge
	}
	return only
}

// operand returns the first operand of the instruction that makes v.
func operand(v ssa.Value) ssa.Value { return *v.(ssa.Instruction).Operands(nil)[0] }

// assignments returns all assignments to the variable at addr, also in closures. It reports false
// if the address escapes.
func assignments(addr ssa.Value) (all []*ssa.Store, known bool) {
	for _, ref := range *addr.Referrers() {
		switch ref := ref.(type) {
		case *ssa.Store:
			if ref.Addr != addr {
				return nil, false
			}
			all = append(all, ref)
		case *ssa.UnOp:
		case *ssa.MakeClosure:
			for i, binding := range ref.Bindings {
				if binding == addr {
					inner, known := assignments(ref.Fn.(*ssa.Function).FreeVars[i])
					if !known {
						return nil, false
					}
					all = append(all, inner...)
				}
			}
		default:
			return nil, false
		}
	}
	return all, true
}

// OnlyStore returns the only assignment to a variable. It returns nil if there are or may be
// others, or if the assignment is in a closure.
func OnlyStore(cell *ssa.Alloc) *ssa.Store {
	all, _ := assignments(cell)
	if len(all) != 1 || all[0].Addr != cell {
		return nil
	}
	return all[0]
}

// lastStore returns the assignment to a variable that a load sees. It returns nil unless the
// assignment is in the same block and no call in between can assign the variable.
func lastStore(cell *ssa.Alloc, load *ssa.UnOp) (last *ssa.Store) {
	all, known := assignments(cell)
	shared := !known || slices.ContainsFunc(all, func(s *ssa.Store) bool { return s.Addr != cell })
	for _, instr := range load.Block().Instrs[:index(load)] {
		switch instr := instr.(type) {
		case *ssa.Store:
			if instr.Addr == cell {
				last = instr
			}
		case *ssa.Call, *ssa.RunDefers:
			if shared {
				last = nil
			}
		}
	}
	return last
}

// captured returns the only assignment to the captured variable v, which is in an enclosing
// function, or nil.
func captured(v *ssa.FreeVar) *ssa.Store {
	closure := v.Parent()
	for instr := range Instructions(closure.Parent()) {
		if made, ok := instr.(*ssa.MakeClosure); ok && made.Fn == closure {
			switch binding := made.Bindings[slices.Index(closure.FreeVars, v)].(type) {
			case *ssa.Alloc:
				return OnlyStore(binding)
			case *ssa.FreeVar:
				return captured(binding)
			}
		}
	}
	return nil
}

// Base returns the block that v points to, is a part of or views: p for &p.x, b for b[1:], the
// argument of PtrTo for the result of its Get.
func Base(v ssa.Value) ssa.Value {
	for range maxSteps {
		v = Value(v)
		next := view(v)
		if next == nil {
			return v
		}
		v = next
	}
	return v
}

// view is one step of Base: it returns the value whose memory v refers to, or nil.
func view(v ssa.Value) ssa.Value {
	switch v := v.(type) {
	case *ssa.Slice, *ssa.FieldAddr, *ssa.IndexAddr, *ssa.SliceToArrayPointer:
		return operand(v)
	case *ssa.Convert:
		if isAddress(v.Type()) && isAddress(v.X.Type()) {
			return v.X
		}
	case *ssa.Call:
		switch Builtin(v) {
		case "Add", "Slice", "SliceData", "String", "StringData":
			return v.Call.Args[0]
		}
		if of, ok := offheap.Of(v).Views(); ok {
			return of
		}
	}
	return nil
}

// Builtin returns the name of the built-in function that is called, or "".
func Builtin(call ssa.CallInstruction) string {
	if b, ok := call.Common().Value.(*ssa.Builtin); ok {
		return b.Name()
	}
	return ""
}

// isAddress reports whether t is a pointer, safe or not.
func isAddress(t types.Type) bool {
	switch t := t.Underlying().(type) {
	case *types.Pointer:
		return true
	case *types.Basic:
		return t.Kind() == types.UnsafePointer
	}
	return false
}

// A Key identifies a value. Two values are the same if their keys are equal and, for loaded values,
// nothing in between can change the variable or field.
type Key struct {
	root ssa.Value
	path string // the fields that were loaded, from root on
}

// KeyOf returns the key of v.
func KeyOf(v ssa.Value) Key {
	v = Value(v)
	switch x := v.(type) {
	case *ssa.UnOp:
		if x.Op != token.MUL {
			break
		}
		switch addr := x.X.(type) {
		case *ssa.FieldAddr:
			return field(addr.X, addr.Field)
		case *ssa.FreeVar:
			if captured(addr) != nil {
				return Key{addr, ""}
			}
			return Key{addr, "*"}
		case *ssa.Global, *ssa.Alloc:
			return Key{addr, "*"}
		}
	case *ssa.Field:
		return field(x.X, x.Field)
	}
	return Key{v, ""}
}

// field returns the key of a field of a struct or of a pointer's target.
func field(of ssa.Value, index int) Key {
	k := KeyOf(of)
	k.path += fmt.Sprint(".", index)
	return k
}

// IsOne reports whether a at x and b at y are the same value. One of the instructions dominates the
// other.
func IsOne(a, b ssa.Value, x, y ssa.Instruction) bool {
	k := KeyOf(a)
	if k != KeyOf(b) {
		return false
	}
	if Dominates(y, x) {
		x, y = y, x
	}
	return k.path == "" || k.isStable(Between(x, y))
}

// isStable reports whether none of the instructions can change the variable or the fields from
// which the value was loaded.
func (k Key) isStable(between []ssa.Instruction) bool {
	for _, instr := range between {
		switch instr := instr.(type) {
		case *ssa.Store:
			switch addr := instr.Addr.(type) {
			case *ssa.FieldAddr, *ssa.Global, *ssa.FreeVar:
				return false
			case *ssa.Alloc:
				if addr == k.root {
					return false
				}
			}
		case ssa.CallInstruction:
			if Builtin(instr) == "" && offheap.Of(instr).Name == "" {
				return false
			}
		}
	}
	return true
}

// Int returns the value of a constant integer.
func Int(v ssa.Value) (int64, bool) {
	c, ok := v.(*ssa.Const)
	if !ok || c.Value == nil {
		return 0, false
	}
	return constant.Int64Val(constant.ToInt(c.Value))
}

// Same reports whether two numbers are certainly equal: equal constants, the same value, or the
// same arithmetic on equal numbers.
func Same(x, y ssa.Value) bool {
	if x == y {
		return true
	}
	if a, ok := Int(x); ok {
		b, ok := Int(y)
		return ok && a == b
	}
	switch x := x.(type) {
	case *ssa.BinOp:
		y, ok := y.(*ssa.BinOp)
		return ok && x.Op == y.Op && Same(x.X, y.X) && Same(x.Y, y.Y)
	case *ssa.Convert:
		y, ok := y.(*ssa.Convert)
		return ok && types.Identical(x.Type(), y.Type()) && Same(x.X, y.X)
	case *ssa.UnOp:
		y, ok := y.(*ssa.UnOp)
		return ok && x.Op == y.Op && (Same(x.X, y.X) || KeyOf(x) == KeyOf(y))
	case *ssa.Call:
		y, ok := y.(*ssa.Call)
		if !ok {
			return false
		}
		f, g := Builtin(x), Builtin(y)
		return f == g && (f == "len" || f == "cap") && KeyOf(x.Call.Args[0]) == KeyOf(y.Call.Args[0])
	}
	return false
}
