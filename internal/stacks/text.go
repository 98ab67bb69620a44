// Text: stacks as text, and without frames of this module.

package stacks

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
)

const module = "github.com/freehold-go/freehold"

// Outside returns a stack without its innermost frames of package freehold, of the internal
// packages, of budget.Account, and of the named packages of this module. Each program counter
// of runtime.Callers is one frame.
func Outside(pcs []uintptr, packages ...string) []uintptr {
	frames := runtime.CallersFrames(pcs)
	for i := range pcs {
		if f, _ := frames.Next(); !isOwn(f, packages) {
			return pcs[i:]
		}
	}
	return pcs
}

// Caller returns a stack without its innermost frames of this module. through is the last of
// these functions, such as "arena.(*Arena).Alloc", or "" if it belongs to package freehold or
// its internals. Tests, examples and commands count as outside. A stack that is all inside is
// returned whole.
func Caller(pcs []uintptr) (outside []uintptr, through string) {
	frames := runtime.CallersFrames(pcs)
	for i := range pcs {
		f, _ := frames.Next()
		if !isLibrary(f) {
			return pcs[i:], through
		}
		if through = ""; !isOwn(f, nil) {
			through = short(f.Function)
		}
	}
	return pcs, ""
}

// isLibrary reports whether a frame is in a package of this module that programs import.
func isLibrary(f runtime.Frame) bool {
	name, found := strings.CutPrefix(f.Function, module)
	return found && (name[0] == '.' || name[0] == '/') && !strings.HasSuffix(f.File, "_test.go") &&
		!strings.HasPrefix(name, "/examples/") && !strings.HasPrefix(name, "/cmd/") && !strings.HasPrefix(name, "/lab/")
}

// short returns a function's name without the directory of its package.
func short(function string) string {
	path := function
	if i := strings.IndexAny(function, "(["); i >= 0 { // type arguments may have paths
		path = function[:i]
	}
	return function[strings.LastIndexByte(path, '/')+1:]
}

// isOwn reports whether Outside leaves out a frame. An account counts because it is a heap;
// tests do not.
func isOwn(f runtime.Frame, packages []string) bool {
	name, found := strings.CutPrefix(f.Function, module)
	if !found || strings.HasSuffix(f.File, "_test.go") {
		return false
	}
	in := func(pkg string) bool { return strings.HasPrefix(name, "/"+pkg+".") }
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "/internal/") ||
		strings.HasPrefix(name, "/budget.(*Account).") || slices.ContainsFunc(packages, in)
}

// Text returns a stack in the form of Go's panics: two lines a frame, the function's name and
// its file and line, each after indent. It ends at main, a test's runner or a goroutine's
// start.
func Text(pcs []uintptr, indent string) string {
	if len(pcs) == 0 {
		return indent + "(a stack that was not recorded)\n"
	}
	var b strings.Builder
	frames := runtime.CallersFrames(pcs)
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		switch f.Function {
		case "runtime.main", "testing.tRunner", "runtime.goexit":
			return b.String()
		}
		fmt.Fprintf(&b, "%s%s\n%s\t%s:%d\n", indent, f.Function, indent, f.File, f.Line)
	}
	return b.String()
}

// At returns the heading "allocated at:", for the verb "allocated", and below it the stack from
// the first caller of this module on, as Text does. If the caller called a container, the heading
// names the function, as in "allocated through cache.(*Cache).View at:". At returns "" for an empty
// stack.
func At(verb string, pcs []uintptr, indent string) string {
	if len(pcs) == 0 {
		return ""
	}
	stack, through := Caller(pcs)
	if through != "" {
		verb += " through " + through
	}
	return verb + " at:\n" + Text(stack, indent)
}

// At returns At for the stack of an ID. Each line follows a newline. It is empty for Other.
func (t *Table) At(verb string, id ID) string {
	pcs, _ := t.Stack(id)
	if len(pcs) == 0 {
		return ""
	}
	return "\n\t" + strings.TrimSuffix(At(verb, pcs, "\t\t"), "\n")
}
