// Package unclosed defines an analyzer that reports owners of off-heap memory which
// are not closed on every path.
package unclosed

import (
	"slices"

	"golang.org/x/tools/go/ssa"

	"github.com/freehold-go/freehold/analysis/internal/flow"
	"github.com/freehold-go/freehold/analysis/internal/offheap"
)

const doc = `report owners of off-heap memory that are not closed on every path

Close ends a heap, an arena, a pool, a cache, a buffer or a container. Put returns an
arena to its Recycler, and Leave ends a guard. The collector does none of these:

	scratch := arena.New(heap, nil)
	if err := parse(scratch, r); err != nil {
		return err // scratch leaks
	}
	scratch.Close()

The analyzer reports an owner if a return may be reached without this call. It does
not report an owner that is returned, stored, captured or passed to a function, since
others may close it; a function of the same package that only allocates from it does
not count. An arena, pool or cache over an owner that is made in the same function
ends with that owner. A return from main ends the process, so there only buffers in
files are reported.`

// Analyzer reports owners that are not closed.
var Analyzer = flow.Analyzer("unclosed", doc, func(pass *flow.Pass, fn *ssa.Function) {
	for instr := range flow.CallsIn(fn) {
		if call, ok := instr.(*ssa.Call); ok {
			owner, ok := offheap.Of(call).Makes()
			if ok && owner.Closer != "" && !endsOtherwise(call, owner) {
				check(pass, call, owner)
			}
		}
	}
})

// endsOtherwise reports whether an owner needs no Close, because the process ends, or one of its
// parents that the same function has made.
func endsOtherwise(call *ssa.Call, owner offheap.Owner) bool {
	if isFile := owner.Failure >= 0 && owner.Closer == "Close"; isFile {
		return false
	}
	if fn := call.Parent(); fn.Name() == "main" && fn.Signature.Recv() == nil && fn.Pkg.Pkg.Name() == "main" {
		return true
	}
	switch owner.Name {
	case "Guard", "Buffer", "Recycler":
		return false
	}
	if owner.Closer == "Put" {
		return false
	}
	for _, parent := range owner.Parents {
		for _, v := range flow.Owners(parent) {
			if made, over, ok := flow.Made(v); ok && made.Parent() == call.Parent() && over.Closer != "" {
				return true
			}
		}
	}
	return false
}

// check reports an owner if a return can be reached that does not close it.
func check(pass *flow.Pass, call *ssa.Call, owner offheap.Owner) {
	value, failure := results(call, owner)
	if value == nil && (failure != nil || hasOther(call)) {
		return // a test expects the error, or the caller gets both results
	}
	t := newTracker(owner, maxDepth)
	t.endWith(call.Parent())
	if value != nil {
		t.follow(value, false)
	}
	end := leak(call, failure, t)
	if end == nil {
		return
	}
	what := "the " + owner.Name + " of " + pass.Text(call)
	if len(t.done) == 0 {
		pass.Reportf(call.Pos(), "%s is never %s: call or defer its %s", what, past[owner.Closer], owner.Closer)
		return
	}
	line := "the end of the function"
	if end.Pos().IsValid() {
		line = pass.Line(end.Pos())
	}
	pass.ReportWith(end.Pos(), "this return may be reached without its "+owner.Closer, call.Pos(),
		what+" is not "+past[owner.Closer]+" on all paths: the return at "+line+" comes without its "+owner.Closer)
}

// past is the participle of an owner's closer.
var past = map[string]string{"Close": "closed", "Put": "put back", "Leave": "left"}

// results returns the owner and the error that a call returns, each nil if it is not used.
func results(call *ssa.Call, owner offheap.Owner) (value, failure ssa.Value) {
	if owner.Failure < 0 {
		return call, nil
	}
	for _, ref := range *call.Referrers() {
		if x, ok := ref.(*ssa.Extract); ok {
			switch {
			case len(*x.Referrers()) == 0: // assigned to _
			case x.Index == 0:
				value = x
			case x.Index == owner.Failure:
				failure = x
			}
		}
	}
	return value, failure
}

// hasOther reports whether the results of a call are used as a whole, as in return f().
func hasOther(call *ssa.Call) bool {
	return slices.ContainsFunc(*call.Referrers(), func(ref ssa.Instruction) bool {
		_, part := ref.(*ssa.Extract)
		return !part
	})
}
