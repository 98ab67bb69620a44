// Package auto starts a memory budget when a program imports it:
//
//	import _ "github.com/freehold-go/freehold/budget/auto"
//
// It calls [budget.Start] with nil before main begins. In a container Go's heap and off-heap memory
// then stay within its limit. Elsewhere the collector keeps its own pace, except that Go's heap may
// always grow to 64 MiB before it runs. Otherwise a program whose large data is off-heap would
// collect all the time. A GOMEMLIMIT or GOGC of the environment stays as it is, and so does a limit
// or a GOGC that the program sets. FREEHOLD_MEMORY_LIMIT gives the process another limit.
//
// [budget.Running] returns the budget, for its Stats, its Account and OnPressure, and to stop it.
// To start one with other options, stop it first. If there is no limit, or if
// FREEHOLD_MEMORY_LIMIT is not a size, a line on standard error says so, and nothing has changed.
//
// It is for package main: a library that imports it decides for all programs that use the library.
package auto

import (
	"fmt"
	"io"
	"os"

	"github.com/freehold-go/freehold/budget"
)

func init() { start(budget.Start, os.Stderr) }

// start starts a budget, or tells w why there is none.
func start(with func(*budget.Options) (*budget.Budget, error), w io.Writer) {
	if _, err := with(nil); err != nil {
		fmt.Fprintln(w, err)
	}
}
