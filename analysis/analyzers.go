// Package analysis finds mistakes with off-heap memory at build time.
//
// Its analyzers are for golang.org/x/tools/go/analysis. They run in the command freeholdvet, in go
// vet, in golangci-lint and in editors. They check one function at a time, and follow calls to
// functions of the same package. They report only certain mistakes, so a silent run is no proof:
// freehold's panics, alloctest and FREEHOLD_DEBUG=poison find the rest.
//
//   - pointerfree: types with Go pointers that are stored off-heap
//   - useafterfree: memory that is used or freed after its end
//   - unclosed: owners that are not closed on every path
//   - freepart: frees of anything but a whole block
//   - appendoff: slices that the built-in append moves to the Go heap
//   - escape: memory that is kept beyond the end of its block or of its loan
//   - gomemory: references to Go memory that are meant for off-heap memory
package analysis

import (
	"golang.org/x/tools/go/analysis"

	"github.com/freehold-go/freehold/analysis/appendoff"
	"github.com/freehold-go/freehold/analysis/escape"
	"github.com/freehold-go/freehold/analysis/freepart"
	"github.com/freehold-go/freehold/analysis/gomemory"
	"github.com/freehold-go/freehold/analysis/pointerfree"
	"github.com/freehold-go/freehold/analysis/unclosed"
	"github.com/freehold-go/freehold/analysis/useafterfree"
)

// Analyzers returns all analyzers of this module.
func Analyzers() []*analysis.Analyzer {
	return []*analysis.Analyzer{
		appendoff.Analyzer,
		escape.Analyzer,
		freepart.Analyzer,
		gomemory.Analyzer,
		pointerfree.Analyzer,
		unclosed.Analyzer,
		useafterfree.Analyzer,
	}
}
