// Text: a stack as messages show it.

package stacks

import (
	"fmt"
	"runtime"
	"strings"
)

const module = "github.com/freehold-go/freehold"

// Text returns a line with the heading and then the stack, one call in two lines, each
// indented, from the first caller of package freehold on. It is empty for Other.
func (t *Table) Text(heading string, id ID) string {
	pcs, _ := t.Stack(id)
	if len(pcs) == 0 {
		return ""
	}
	var s strings.Builder
	fmt.Fprintf(&s, "\n\t%s", heading)
	frames := runtime.CallersFrames(pcs)
	for inside, more := true, true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if inside = inside && isOwn(f); !inside {
			fmt.Fprintf(&s, "\n\t\t%s\n\t\t\t%s:%d", f.Function, f.File, f.Line)
		}
	}
	return s.String()
}

// isOwn reports whether a call is inside package freehold or its internals.
func isOwn(f runtime.Frame) bool {
	name, found := strings.CutPrefix(f.Function, module)
	return found && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "/internal/")) && !strings.HasSuffix(f.File, "_test.go")
}
