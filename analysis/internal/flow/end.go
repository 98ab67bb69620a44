// Ends: the calls after which a block or an owner is gone.

package flow

import (
	"go/token"

	"golang.org/x/tools/go/ssa"

	"github.com/freehold-go/freehold/analysis/internal/offheap"
)

// An End is an instruction after which a block is gone, or an owner, or the blocks
// of one. Either Block or Owner is nil.
type End struct {
	Instr    ssa.Instruction
	Call     offheap.Call // the call of freehold, perhaps in a function that Instr calls
	Deferred bool         // the end comes when the function returns
	Block    ssa.Value
	To       ssa.Value // the allocator that Block is freed to, or nil
	Replaced bool      // by the result of the call, which has succeeded
	Retired  bool      // Block may be read on
	Owner    ssa.Value
	Itself   bool      // Owner is closed
	Blocks   bool      // those of Owner have ended
	Since    ssa.Value // only those allocated after this Mark

	in *ssa.BasicBlock // where Replaced holds, if not after Instr
}

// Before reports whether the end has come whenever instr runs.
func (e End) Before(instr ssa.Instruction) bool {
	if e.Deferred {
		return false
	}
	if e.in != nil {
		return e.in.Dominates(instr.Block())
	}
	return Dominates(e.Instr, instr)
}

// Pos is the place of the call that ends.
func (e End) Pos() token.Pos { return e.Instr.Pos() }

// Ends returns the ends in fn, those that a called function of the same package
// brings about among them.
func Ends(fn *ssa.Function) []End { return ends(fn, maxDepth) }

func ends(fn *ssa.Function, depth int) []End {
	var all []End
	for call := range CallsIn(fn) {
		if _, isGo := call.(*ssa.Go); isGo {
			continue
		}
		_, deferred := call.(*ssa.Defer)
		c := offheap.Of(call)
		switch {
		case c.Name != "":
			all = append(all, endsOf(c, call, deferred)...)
		case depth > 0:
			all = append(all, endsWithin(call, deferred, depth-1)...)
		}
	}
	return all
}

// endsOf returns the ends that a call of freehold is.
func endsOf(c offheap.Call, call ssa.CallInstruction, deferred bool) []End {
	e := End{Instr: call, Call: c, Deferred: deferred}
	if block, to, ok := c.Frees(); ok {
		e.Block, e.To = block, to
		return []End{e}
	}
	if block, to, ok := c.Retires(); ok {
		e.Block, e.To, e.Retired = block, to, true
		return []End{e}
	}
	if end, ok := c.Ends(); ok {
		e.Owner, e.Itself, e.Blocks, e.Since = end.Owner, end.Itself, end.Blocks, end.Since
		return []End{e}
	}
	if block, result, ok := c.Replaces(); ok && !deferred {
		e.Block, e.Replaced = block, true
		return successes(e, call.(*ssa.Call), result)
	}
	return nil
}

// successes returns an end for each place where a call is known to have
// succeeded: after Must, and where its error is nil or its bool true.
func successes(e End, call *ssa.Call, result int) []End {
	var all []End
	for _, ref := range *call.Referrers() {
		x, ok := ref.(*ssa.Extract)
		if !ok || x.Index != result {
			continue
		}
		for _, ref := range *x.Referrers() {
			switch ref := ref.(type) {
			case *ssa.Call:
				if offheap.Of(ref).Name == "freehold.Must" {
					e.Instr = ref
					all = append(all, e)
				}
			case *ssa.If:
				all = appendIn(all, e, ref, 0)
			case *ssa.UnOp:
				if ref.Op == token.NOT {
					all = appendBranches(all, e, ref, 1)
				}
			case *ssa.BinOp:
				if c, ok := ref.Y.(*ssa.Const); ok && c.IsNil() {
					if ref.Op == token.EQL {
						all = appendBranches(all, e, ref, 0)
					} else {
						all = appendBranches(all, e, ref, 1)
					}
				}
			}
		}
	}
	return all
}

func appendBranches(all []End, e End, cond ssa.Value, branch int) []End {
	for _, ref := range *cond.Referrers() {
		if i, ok := ref.(*ssa.If); ok {
			all = appendIn(all, e, i, branch)
		}
	}
	return all
}

// appendIn adds the end in one branch of an If, unless that can be come to
// otherwise.
func appendIn(all []End, e End, i *ssa.If, branch int) []End {
	if in := i.Block().Succs[branch]; len(in.Preds) == 1 {
		e.in = in
		all = append(all, e)
	}
	return all
}

// endsWithin returns the ends that a call of a function of the package, or of a
// function literal, always brings about, in the caller's values.
func endsWithin(call ssa.CallInstruction, deferred bool, depth int) []End {
	callee := call.Common().StaticCallee()
	if callee == nil || len(callee.Blocks) == 0 {
		return nil
	}
	var all []End
	for _, e := range ends(callee, depth) {
		if e.Replaced || e.Since != nil || !Always(e.Instr) {
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
