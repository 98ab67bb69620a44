// Loans: memory that a function of the user gets, and must not keep.

package flow

import (
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"

	"github.com/freehold-go/freehold/analysis/internal/offheap"
)

// A Loan is memory that freehold gives to a function, as parameters, until the function
// returns.
type Loan struct {
	To      *ssa.Function
	At      ssa.Instruction // the call that lends, or the assignment of an option
	Of      string          // the name of what lends, such as "cache.Cache.View"
	Each    bool            // To is the body of a loop
	Returns bool            // To may return the memory

	params []*ssa.Parameter
}

// LoanAt returns the loan that an instruction makes.
func LoanAt(instr ssa.Instruction) (l Loan, ok bool) {
	l = Loan{At: instr}
	var to ssa.Value
	switch instr := instr.(type) {
	case *ssa.Store:
		addr, isField := instr.Addr.(*ssa.FieldAddr)
		if !isField {
			return l, false
		}
		to = instr.Val
		l.Of, l.Returns, ok = offheap.LendsBy(addr)
	case ssa.CallInstruction:
		c := offheap.Of(instr)
		l.Of = c.Name
		to, ok = c.Lends()
		if iterator, isCall := Value(instr.Common().Value).(*ssa.Call); isCall && len(c.Args) == 1 {
			c := offheap.Of(iterator)
			to, ok, l.Of, l.Each = instr.Common().Args[0], c.LendsEach(), c.Name, true
		}
	}
	if !ok {
		return l, false
	}
	l.To = function(to)
	if l.To == nil {
		return l, false
	}
	n := to.Type().Underlying().(*types.Signature).Params().Len()
	for _, p := range l.To.Params[max(0, len(l.To.Params)-n):] { // without the receiver
		t := p.Type()
		if to, ok := t.Underlying().(*types.Pointer); ok {
			t = to.Elem()
		}
		if offheap.IsText(t) || offheap.IsEntry(t) {
			l.params = append(l.params, p)
		}
	}
	return l, len(l.params) > 0
}

// function returns the function that v is certain to be, or nil.
func function(v ssa.Value) *ssa.Function {
	v = Value(v)
	if closure, ok := v.(*ssa.MakeClosure); ok {
		v = closure.Fn
	}
	fn, _ := v.(*ssa.Function)
	if fn != nil && fn.Synthetic != "" && fn.Syntax() == nil { // the wrapper of a method value
		for call := range CallsIn(fn) {
			return call.Common().StaticCallee()
		}
	}
	return fn
}

// Has reports whether v, a value of the function, refers to the memory that is lent, or
// is a struct, slice or pointer that leads to it.
func (l Loan) Has(v ssa.Value) bool { return l.has(v, maxSteps) }

func (l Loan) has(v ssa.Value, steps int) bool {
	v = Base(v)
	if basic, ok := v.Type().Underlying().(*types.Basic); steps == 0 || ok && basic.Info()&(types.IsNumeric|types.IsBoolean) != 0 {
		return false
	}
	steps--
	switch v := v.(type) {
	case *ssa.Parameter:
		return slices.Contains(l.params, v)
	case *ssa.UnOp:
		if v.Op != token.MUL {
			return false
		}
		if addr, ok := v.X.(*ssa.FieldAddr); ok {
			return l.holds(Value(addr.X), addr.Field, v, steps)
		}
		return l.holds(Value(v.X), -1, v, steps)
	case *ssa.Alloc:
		return l.holds(v, -1, nil, steps)
	case *ssa.Phi:
		return !slices.ContainsFunc(v.Edges, func(edge ssa.Value) bool { return edge != v && !l.has(edge, steps/2) })
	case *ssa.Extract:
		return l.has(v.Tuple, steps)
	case *ssa.Call:
		switch args := v.Call.Args; {
		case Builtin(v) == "append":
			return !offheap.IsText(v.Type()) && (l.has(args[1], steps/2) || l.has(args[0], steps/2))
		case cuts(v):
			return l.has(args[0], steps)
		}
	}
	return false
}

// cuts reports whether a call returns parts of its first argument.
func cuts(call *ssa.Call) bool {
	fn := offheap.Callee(&call.Call)
	if fn == nil || fn.Pkg() == nil || fn.Pkg().Path() != "bytes" && fn.Pkg().Path() != "strings" {
		return false
	}
	is := func(prefix string) bool { return strings.HasPrefix(fn.Name(), prefix) }
	return fn.Signature().Recv() == nil && (is("Trim") || is("Cut") || is("Split") || is("Fields"))
}

// holds reports whether the variable at root, or a field of it unless that is negative,
// has memory that is lent, at a load, or at any time if that is nil.
func (l Loan) holds(root ssa.Value, field int, load ssa.Instruction, steps int) bool {
	param, isParam := root.(*ssa.Parameter)
	if _, isAlloc := root.(*ssa.Alloc); !isAlloc && !isParam {
		return false
	}
	held := isParam && slices.Contains(l.params, param)
	for _, ref := range *root.Referrers() {
		var addr ssa.Value
		switch ref := ref.(type) {
		case *ssa.Store:
			addr = root
		case *ssa.FieldAddr:
			if field >= 0 && ref.Field != field {
				continue
			}
			addr = ref
		case *ssa.IndexAddr:
			addr = ref
		default:
			continue
		}
		for _, ref := range *addr.Referrers() {
			store, ok := ref.(*ssa.Store)
			if !ok || store.Addr != addr || load != nil && !slices.Contains(After(store), load) {
				continue
			}
			if l.has(store.Val, steps/2) {
				held = true
			} else if field >= 0 || addr == root || offheap.IsText(store.Val.Type()) && offheap.Named(root.Type()) != nil && offheap.IsEntry(offheap.Named(root.Type())) {
				return false // other memory may have replaced it
			}
		}
	}
	return held
}
