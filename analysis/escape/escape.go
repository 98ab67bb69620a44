// Package escape defines an analyzer that reports off-heap memory which outlives
// its block.
package escape

import (
	"go/token"
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/freehold-go/freehold/analysis/internal/flow"
	"github.com/freehold-go/freehold/analysis/internal/offheap"
)

const doc = `report off-heap memory that is kept beyond the end of its block

A slice or string of an off-heap block is an ordinary Go value. If it is kept after
the block's Free, it reads other data:

	scratch := arena.New(heap, nil)
	defer scratch.Close()
	name, err := freehold.CloneString(scratch, input)
	return name, err // ended by the deferred Close

The analyzer reports a value if the function frees its block, or ends the block's arena,
pool, buffer or heap, and also keeps the value in one of these ways:

  - It returns the value, by itself or in a struct.
  - It stores the value in a global variable, or in a map or a field of a parameter, of the
    receiver or of a global variable, or sends it to such a channel. It neither takes the
    value out again nor frees the place where it is stored.

strings.Clone and slices.Clone make copies on the Go heap.

Some memory is lent to a function until the function returns:

	c.View(key, func(e cache.Entry) { value = e.Value }) // bytes.Clone(e.Value) may be kept

The analyzer reports lent memory that the function sends, gives to a goroutine, or stores in a
variable from outside, or in a field, slice or map of one. It knows View, Peek, GetMany and
Update of a cache, View of a hashmap.Shared, Update of a hashmap.Map, OnEvict, Decode of a
Codec, Key of extsort, and loops over All of a cache and over Sorted of extsort. It does not
report a captured variable that is never read afterwards.`

// Analyzer reports off-heap memory that outlives its block.
var Analyzer = flow.Analyzer("escape", doc, func(pass *flow.Pass, fn *ssa.Function) {
	ends := flow.Ends(fn)
	for instr := range flow.Instructions(fn) {
		if l, ok := flow.LoanAt(instr); ok {
			reportKept(pass, l)
		}
		for _, use := range flow.Uses(instr) {
			if e := endOf(use, instr, ends); e != nil {
				report(pass, use, instr, e)
				break
			}
		}
	}
})

// endOf returns the end of a block that the use makes its memory outlive, or nil.
func endOf(use flow.Use, instr ssa.Instruction, ends []flow.End) *flow.End {
	switch use.How {
	case flow.Returned:
	case flow.Stored, flow.Sent:
		if !isOthers(use.Place) || isEnded(use.Place, ends) {
			return nil
		}
	default:
		return nil
	}
	for _, v := range parts(use) {
		base := flow.Base(v)
		for _, e := range ends {
			if e.Replaced || e.Retired || !follows(e, instr, use.How) || !e.IsOf(base, instr) && !e.IsOfOwner(base, instr) {
				continue
			}
			if use.How == flow.Stored && isTakenOut(use, instr) || use.How == flow.Sent && waits(instr, e) {
				continue
			}
			return &e
		}
	}
	return nil
}

func report(pass *flow.Pass, use flow.Use, instr ssa.Instruction, e *flow.End) {
	end := pass.Text(e.Call.Instr)
	if e.Deferred {
		end = "the deferred " + end
	}
	pass.ReportWith(e.Pos(), "it ends here", use.Pos(instr),
		"off-heap memory is "+use.How+" and outlives its block, which "+end+" at "+pass.Line(e.Pos())+" ends")
}

// parts returns the value of a use. If it is a struct that the function has made, or its address,
// parts also returns the values of the fields.
func parts(use flow.Use) []ssa.Value {
	all := []ssa.Value{use.Value}
	v := flow.Value(use.Value)
	if load, ok := v.(*ssa.UnOp); ok && load.Op == token.MUL {
		v = load.X
	}
	made, ok := v.(*ssa.Alloc)
	if !ok {
		return all
	}
	for _, ref := range *made.Referrers() {
		field, ok := ref.(*ssa.FieldAddr)
		if !ok {
			continue
		}
		for _, ref := range *field.Referrers() {
			if store, ok := ref.(*ssa.Store); ok && store.Addr == field {
				all = append(all, store.Val)
			}
		}
	}
	return all
}

// follows reports whether an end comes after instr whenever instr runs, except on paths that leave
// the function before.
func follows(e flow.End, instr ssa.Instruction, how string) bool {
	return e.Deferred && flow.Dominates(e.Instr, instr) || how != flow.Returned && flow.Dominates(instr, e.Instr)
}

// isOthers reports whether a place is certainly visible outside of the function: it is in a
// parameter or a variable from outside. The result of a call may be new.
func isOthers(place ssa.Value) bool { return root(place) != nil }

// root returns the parameter or the variable from outside that a place is in, or nil.
func root(place ssa.Value) ssa.Value {
	for {
		switch v := flow.Base(place).(type) {
		case *ssa.Parameter, *ssa.Global, *ssa.FreeVar:
			return v
		case *ssa.UnOp: // a load
			place = v.X
		case *ssa.Field:
			place = v.X
		case *ssa.Lookup:
			place = v.X
		default:
			return nil
		}
	}
}

// isEnded reports whether the function frees or closes the object that contains a place.
func isEnded(place ssa.Value, ends []flow.End) bool {
	k := flow.KeyOf(flow.Base(place))
	return slices.ContainsFunc(ends, func(e flow.End) bool {
		return e.Block != nil && flow.KeyOf(flow.Base(e.Block)) == k || e.Owner != nil && e.Itself && flow.KeyOf(e.Owner) == k
	})
}

// isTakenOut reports whether the place to which instr stores is in off-heap memory, or whether the
// function may assign or clear the place again.
func isTakenOut(use flow.Use, instr ssa.Instruction) bool {
	if _, off := flow.BlockOf(flow.Base(use.Place)); off {
		return true
	}
	_, isMap := instr.(*ssa.MapUpdate)
	return anyIn(instr.Parent(), 2, func(other ssa.Instruction) bool {
		switch other := other.(type) {
		case *ssa.Store:
			return other != instr && isSamePlace(other.Addr, use.Place)
		case ssa.CallInstruction:
			return isMap && (flow.Builtin(other) == "delete" || flow.Builtin(other) == "clear")
		}
		return false
	})
}

// isSamePlace reports whether two addresses may point to the same variable or field.
func isSamePlace(a, b ssa.Value) bool {
	switch a := a.(type) {
	case *ssa.FieldAddr:
		b, ok := b.(*ssa.FieldAddr)
		return ok && a.Field == b.Field && a.X.Type().String() == b.X.Type().String()
	case *ssa.IndexAddr:
		b, ok := b.(*ssa.IndexAddr)
		return ok && a.X.Type().String() == b.X.Type().String()
	}
	return a == b
}

// anyIn reports whether is returns true for an instruction of fn, of its function literals, or of
// the functions of the package that it calls.
func anyIn(fn *ssa.Function, depth int, is func(ssa.Instruction) bool) bool {
	inner := slices.Clone(fn.AnonFuncs)
	for instr := range flow.Instructions(fn) {
		if is(instr) {
			return true
		}
		if call, ok := instr.(ssa.CallInstruction); ok && call.Common().StaticCallee() != nil {
			inner = append(inner, call.Common().StaticCallee())
		}
	}
	return depth > 0 && slices.ContainsFunc(inner, func(fn *ssa.Function) bool { return anyIn(fn, depth-1, is) })
}

// waits reports whether, between the send instr and an end, the function may wait for the receiver
// of the sent value.
func waits(instr ssa.Instruction, e flow.End) bool {
	if e.Deferred {
		return mayWait(flow.After(instr))
	}
	return mayWait(flow.Between(instr, e.Instr))
}

// mayWait reports whether some instructions may wait for a goroutine: by a receive, or by
// a call that is not freehold's.
func mayWait(instrs []ssa.Instruction) bool {
	return slices.ContainsFunc(instrs, func(instr ssa.Instruction) bool {
		switch instr := instr.(type) {
		case *ssa.Select:
			return true
		case *ssa.UnOp:
			return instr.Op == token.ARROW
		case ssa.CallInstruction:
			return flow.Builtin(instr) == "" && offheap.Of(instr).Name == ""
		}
		return false
	})
}
