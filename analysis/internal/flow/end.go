// Ends: the calls that end a block or an owner.

package flow

import (
	"go/token"

	"golang.org/x/tools/go/ssa"

	"github.com/freehold-go/freehold/analysis/internal/offheap"
)

// An End is a call that ends a block, an owner, or the blocks of an owner.
type End struct {
	offheap.End
	Instr    ssa.CallInstruction // for a replaced block perhaps the Must around the call
	Call     offheap.Call        // freehold's call, perhaps inside the function that Instr calls
	Deferred bool                // it runs when the function returns
}

// Pos returns the position of the call.
func (e End) Pos() token.Pos { return e.Instr.Pos() }

// Before reports whether the end always comes before instr.
func (e End) Before(instr ssa.Instruction) bool {
	return !e.Deferred && Dominates(e.Instr, instr) && (!e.Replaced || e.succeeded(instr.Block()))
}

// succeeded reports whether the call that replaces a block has always succeeded when a basic block
// runs.
func (e End) succeeded(in *ssa.BasicBlock) bool {
	if e.Instr != e.Call.Instr {
		return true // Instr is Must
	}
	result := e.Instr.Value()
	if e.Owner != nil && result != nil && len(*result.Referrers()) == 0 {
		return true // the error is ignored, so the code relies on success
	}
	for _, c := range Conditions(in) {
		v, is, ok := c.Nil()
		if !ok {
			v, is = c.Value, c.Is
		}
		if x, ok := v.(*ssa.Extract); is && (ok && x.Tuple == result && x.Index == 1 || e.Owner != nil && v == result) {
			return true
		}
	}
	return false
}

// IsOf reports whether the end is of the block base, as base is at instr.
func (e End) IsOf(base ssa.Value, instr ssa.Instruction) bool {
	return e.Block != nil && IsOne(Base(e.Block), base, e.Instr, instr)
}

// IsOfOwner reports whether the end ends all blocks of an owner, and base is one of them at instr.
func (e End) IsOfOwner(base ssa.Value, instr ssa.Instruction) bool {
	block, ok := BlockOf(base)
	if !e.Blocks || !ok || !e.Deferred && !Dominates(block.Instr, e.Instr) {
		return false
	}
	if e.Since != nil {
		mark, ok := Value(e.Since).(*ssa.Call)
		if !ok || !Dominates(mark, block.Instr) {
			return false
		}
	}
	if e.Key != nil && !e.isOfKey(base, block) {
		return false
	}
	for _, owner := range Owners(block.From) {
		if IsOne(e.Owner, owner, e.Instr, block.Instr) && IsOne(e.Owner, owner, e.Instr, instr) {
			return true
		}
	}
	return false
}

// isOfKey reports whether base, a block of a map, belongs to the entry of the key that the end is
// of, or is that key.
func (e End) isOfKey(base ssa.Value, block Block) bool {
	if e.Replaced && !offheap.IsText(base.Type()) {
		return false // replaced in place
	}
	key := block.Call.Key()
	return KeyOf(Base(e.Key)) == KeyOf(base) || key != nil && isSameKey(e.Key, key, e.Instr, block.Instr)
}

// isSameKey reports whether two keys, at two instructions, are certain to be equal.
func isSameKey(a, b ssa.Value, x, y ssa.Instruction) bool {
	n, ok := Int(a)
	m, ok2 := Int(b)
	return ok && ok2 && n == m || IsOne(a, b, x, y)
}

// Ends returns the ends in fn, including ends inside called functions of the same package.
func Ends(fn *ssa.Function) []End { return ends(fn, maxDepth) }

func ends(fn *ssa.Function, depth int) (all []End) {
	for call := range CallsIn(fn) {
		c := offheap.Of(call)
		end, ok := c.Ends()
		_, isGo := call.(*ssa.Go)
		_, deferred := call.(*ssa.Defer)
		switch e := (End{end, call, c, deferred}); {
		case isGo:
		case ok && e.Replaced && e.Block != nil:
			all = append(all, replacements(e)...)
		case ok:
			all = append(all, e)
		case c.Name == "" && depth > 0:
			all = append(all, endsWithin(call, deferred, depth-1)...)
		}
	}
	return all
}

// replacements returns an end of the replaced block for each place that checks whether the call has
// succeeded.
func replacements(e End) (all []End) {
	call, ok := e.Instr.(*ssa.Call)
	if !ok {
		return nil
	}
	for _, ref := range *call.Referrers() {
		x, ok := ref.(*ssa.Extract)
		if !ok || x.Index != 1 {
			continue
		}
		for _, ref := range *x.Referrers() {
			e.Instr = call
			if must, ok := ref.(*ssa.Call); ok && offheap.Of(must).Name == "freehold.Must" {
				e.Instr = must
			}
			all = append(all, e)
		}
	}
	return all
}

// endsWithin returns the ends that a call of a function of the package, or of a function literal,
// always causes. They are in terms of the caller's values.
func endsWithin(call ssa.CallInstruction, deferred bool, depth int) (all []End) {
	callee := call.Common().StaticCallee()
	if callee == nil {
		return nil
	}
	for _, e := range ends(callee, depth) {
		if e.Replaced || e.Since != nil || !always(e.Instr) {
			continue
		}
		e.Instr, e.Deferred = call, deferred
		e.Block, e.Owner, e.To = argument(call, e.Block), argument(call, e.Owner), argument(call, e.To)
		if e.Block != nil || e.Owner != nil {
			all = append(all, e)
		}
	}
	return all
}
