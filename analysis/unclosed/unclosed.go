// Package unclosed defines an analyzer that reports owners of off-heap memory which
// are not closed on every path.
package unclosed

import (
	"go/token"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/buildssa"
	"golang.org/x/tools/go/ssa"

	"github.com/freehold-go/freehold/analysis/internal/flow"
	"github.com/freehold-go/freehold/analysis/internal/offheap"
	"github.com/freehold-go/freehold/analysis/internal/source"
)

const doc = `report owners of off-heap memory that are not closed on every path

A heap, an arena, a pool, a cache, a buffer and a container are closed by Close, an
arena of a Recycler goes back by Put, and a guard ends with Leave. The collector does
none of these:

	scratch := arena.New(heap, nil)
	if err := parse(scratch, r); err != nil {
		return err // scratch leaks
	}
	scratch.Close()

Reported is an owner if a return may be reached without. One that is returned,
stored, captured or passed to a function is that one's to close, unless the function
is of the same package and only allocates from it. An arena, pool or cache over
another owner that is made in the same function ends with that. A return of main
ends the process, so it closes all but buffers in files.`

// Analyzer reports owners that are not closed.
var Analyzer = &analysis.Analyzer{
	Name:     "unclosed",
	Doc:      doc,
	URL:      "https://pkg.go.dev/github.com/freehold-go/freehold/analysis/unclosed",
	Requires: []*analysis.Analyzer{buildssa.Analyzer},
	Run:      run,
}

func run(pass *analysis.Pass) (any, error) {
	calls := source.Of(pass)
	for instr := range flow.Calls(pass) {
		call, ok := instr.(*ssa.Call)
		if !ok {
			continue
		}
		owner, ok := offheap.Of(call).Makes()
		if ok && owner.Closer != "" && !endsOtherwise(call, owner) {
			check(pass, calls, call, owner)
		}
	}
	return nil, nil
}

// endsOtherwise reports whether an owner needs no close: the process or an owner
// that it is over ends before.
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
			made, ok := flow.Value(v).(*ssa.Call)
			if !ok || made.Parent() != call.Parent() {
				continue
			}
			if over, ok := offheap.Of(made).Makes(); ok && over.Closer != "" {
				return true
			}
		}
	}
	return false
}

// check reports an owner if a return can be reached that does not close it.
func check(pass *analysis.Pass, calls source.Calls, call *ssa.Call, owner offheap.Owner) {
	value, failure := results(call, owner)
	if value == nil && (failure != nil || hasOther(call)) {
		return // an error is expected, or the caller gets both
	}
	t := newTracker(owner)
	t.endWith(call.Parent())
	if value != nil {
		t.follow(value, false)
	}
	end := leak(call, failure, t)
	if end == nil {
		return
	}
	where := calls.Text(call)
	if len(t.done) == 0 {
		pass.Reportf(call.Pos(), "the %s of %s is never %s: call or defer its %s", owner.Name, where, past(owner), owner.Closer)
		return
	}
	line := calls.Line(end.Pos())
	if !end.Pos().IsValid() {
		line = "the end of the function"
	}
	pass.Report(analysis.Diagnostic{
		Pos:     call.Pos(),
		Message: "the " + owner.Name + " of " + where + " is not " + past(owner) + " on all paths: the return at " + line + " comes without its " + owner.Closer,
		Related: related(end.Pos(), owner),
	})
}

func related(pos token.Pos, owner offheap.Owner) []analysis.RelatedInformation {
	if !pos.IsValid() {
		return nil
	}
	return []analysis.RelatedInformation{{Pos: pos, Message: "this return may be reached without its " + owner.Closer}}
}

// past returns the participle of an owner's closer.
func past(owner offheap.Owner) string {
	switch owner.Closer {
	case "Put":
		return "put back"
	case "Leave":
		return "left"
	}
	return strings.ToLower(owner.Closer) + "d"
}

// results returns the owner and the error that a call returns, each nil if it is
// not used.
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

// hasOther reports whether the results of a call are used as a whole, as in return
// f().
func hasOther(call *ssa.Call) bool {
	for _, ref := range *call.Referrers() {
		switch ref.(type) {
		case *ssa.Extract, *ssa.DebugRef:
		default:
			return true
		}
	}
	return false
}
