// Promises: how each mistake is detected, by build and mode.

package misuse

import (
	"errors"
	"fmt"
	"strings"

	"github.com/freehold-go/freehold"
)

// caught has the detection of a mistake in each build and mode. A build with a zero how promises
// nothing. A mode with a zero how, and the build with -asan, detect it as the plain build does.
// inTests is for blocks from alloctest.New.
type caught struct {
	plain, race how // builds
	asan        how // a build, with the plain build's detection if zero
	inTests     how

	poison, guard, leak how // modes: values of FREEHOLD_DEBUG
}

// always returns a promise of every build.
func always(h how) caught { return caught{plain: h, race: h} }

// inDebugModes returns a promise of each debug mode and of the build with -asan.
func inDebugModes(h how) caught { return caught{poison: h, guard: h, leak: h, asan: h} }

// andInTests adds the detection in tests with blocks from alloctest.New.
func (c caught) andInTests(h how) caught {
	c.inTests = h
	return c
}

// in returns the promise of a mode with the given how: the plain build's if it is zero.
func (c caught) in(h how) how {
	if h == (how{}) {
		return c.plain
	}
	return h
}

// A column is a build or a mode, a column of the table.
type column struct {
	name    string
	promise func(c caught) how
}

var columns = []column{
	{"plain", func(c caught) how { return c.plain }},
	{"poison", func(c caught) how { return c.in(c.poison) }},
	{"guard", func(c caught) how { return c.in(c.guard) }},
	{"leak", func(c caught) how { return c.in(c.leak) }},
	{"asan", func(c caught) how { return c.in(c.asan) }},
	{"race", func(c caught) how { return c.race }},
}

// A mode is a value of FREEHOLD_DEBUG under which the programs run, in the plain build.
type mode struct {
	variable string
	promise  func(c caught) how
}

var modes = []mode{
	{"poison", func(c caught) how { return c.in(c.poison) }},
	{"guard", func(c caught) how { return c.in(c.guard) }},
	{"leak", func(c caught) how { return c.in(c.leak) }},
}

// here returns the promise for this build or mode.
func (c caught) here() how {
	switch {
	case race:
		return c.race
	case asan:
		return c.in(c.asan)
	}
	for _, m := range modes {
		if m.variable == modeHere {
			return m.promise(c)
		}
	}
	return c.plain
}

// A how is a way to detect a mistake.
type how struct {
	kind  kind
	words string // a part of the message
}

type kind string

const (
	notPromised kind = ""
	aPanic      kind = "panic"         // its text begins with "freehold: "
	outOfMemory kind = "out of memory" // an error that matches ErrOutOfMemory
	anError     kind = "error"
	aNo         kind = "false"                // the guilty call's answer
	aNil        kind = "nil"                  // likewise
	contained   kind = "panic, or no harm"    // which of the two depends on nanoseconds
	noHarm      kind = "no harm"              // the mistake is harmless in this mode
	aFault      kind = "fault"                // at the guilty instruction
	guardReport kind = "guard report"         // of Explain, for a fault at the guilty instruction
	leakReport  kind = "leak report"          // of AtExit, with the stack
	raceReport  kind = "race report"          // of the race detector
	raceOrPanic kind = "race report or panic" // whichever is first
	asanReport  kind = "asan report"          // of the address sanitizer
	goPointer   kind = "CheckPointers"        // in the findings of CheckPointers
	testFails   kind = "test fails"           // at its end at the latest
)

func panics(words string) how  { return how{aPanic, words} }
func fails(words string) how   { return how{anError, words} }
func reports(words string) how { return how{testFails, words} }
func points(words string) how  { return how{goPointer, words} }
func guarded(words string) how { return how{guardReport, words} }
func leaks(words string) how   { return how{leakReport, words} }

var (
	refuses       = how{kind: outOfMemory}
	answersNo     = how{kind: aNo}
	returnsNil    = how{kind: aNil}
	isHarmless    = how{kind: contained}
	harmless      = how{kind: noHarm}
	faults        = how{kind: aFault}
	races         = how{kind: raceReport}
	racesOrPanics = how{kind: raceOrPanic}
	sanitized     = how{kind: asanReport}
)

// inChild reports whether the program must run in a child process.
func (h how) inChild() bool {
	switch h.kind {
	case notPromised, aFault, leakReport, raceReport, raceOrPanic, asanReport:
		return true
	}
	return false
}

// fault describes how an outcome breaks the promise h; "" means not at all.
func (h how) fault(o outcome) string {
	isOurs := strings.HasPrefix(o.panicked, "freehold: ")
	raced := strings.Contains(o.output, "WARNING: DATA RACE")
	ok := false
	switch h.kind {
	case notPromised:
		ok = true
	case aPanic:
		ok = isOurs && strings.Contains(o.panicked, h.words)
	case outOfMemory:
		ok = o.panicked == "" && errors.Is(o.err, freehold.ErrOutOfMemory)
	case anError:
		ok = o.panicked == "" && o.err != nil && strings.Contains(o.err.Error(), h.words)
	case aNo, aNil:
		ok = o.panicked == "" && o.no
	case contained:
		ok = o.panicked == "" || isOurs
	case noHarm:
		ok = o.panicked == ""
	case aFault:
		ok = o.faulted
	case guardReport:
		ok = o.faulted && strings.Contains(o.explained, h.words) && strings.Contains(o.explained, "_test.go:")
	case leakReport:
		_, stack, found := strings.Cut(o.output, h.words)
		ok = found && strings.Contains(stack, "_test.go:")
	case raceReport:
		ok = raced
	case raceOrPanic:
		ok = raced || isOurs
	case asanReport:
		ok = strings.Contains(o.output, "ERROR: AddressSanitizer")
	case goPointer:
		ok = o.panicked == "" && strings.Contains(o.pointers, h.words) || !canCheckPointers
	case testFails:
		ok = strings.Contains(o.reports, h.words)
	}
	if ok {
		return ""
	}
	return fmt.Sprintf("want %s %q; panic %q, fault %v %q, error %v, answered no %v, Go pointers %q, reports %q, output:\n%s",
		h.kind, h.words, o.panicked, o.faulted, o.explained, o.err, o.no, o.pointers, o.reports, o.output)
}
