// Package gomemory defines an analyzer that reports references to Go memory which are
// meant for off-heap memory.
package gomemory

import (
	"golang.org/x/tools/go/ssa"

	"github.com/freehold-go/freehold/analysis/internal/flow"
	"github.com/freehold-go/freehold/analysis/internal/offheap"
)

const doc = `report PtrTo, SliceOf and StringOf of Go memory

A Ptr, Slice or String may be stored off-heap, where the collector does not see it. So
it must refer to off-heap memory:

	node.name = freehold.StringOf(string(line[:n])) // another string after the next collection

The analyzer reports variables, make, new, literals, constants, conversions, results of
append to Go memory, concatenations, and copies that functions of the standard library
return. Store the result of freehold.New, MakeSlice, Clone or CloneString instead. The
analyzer does not know the targets of parameters and fields: FREEHOLD_DEBUG=poison checks
them at run time.`

// Analyzer reports references to Go memory.
var Analyzer = flow.Analyzer("gomemory", doc, func(pass *flow.Pass, fn *ssa.Function) {
	for call := range flow.CallsIn(fn) {
		c := offheap.Of(call)
		if !c.Refers() {
			continue
		}
		if fault := flow.GoMemory(c.Args[0]); fault != "" {
			pass.Reportf(call.Common().Pos(), "%s of %s, which is %s", pass.Text(call), pass.Name(c, c.Args[0], "an argument"), fault)
		}
	}
})
