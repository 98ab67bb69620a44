// Promises: how each mistake is detected, by build and mode.

package misuse

import (
	"errors"
	"fmt"
	"strings"

	"github.com/freehold-go/freehold"
)

// caught says how a mistake is detected. The zero how of a build is no promise. A mode, and
// the build with -asan, detect what the plain build does, unless there is a how for them.
// inTests is neither: the blocks are from alloctest.New then.
type caught struct {
	plain, race how // builds
	asan        how // a build that is like a mode
	inTests     how

	poison, guard, leak how // modes: values of FREEHOLD_DEBUG
}

// always is what every build promises.
func always(h how) caught { return caught{plain: h, race: h} }

// inDebugModes is what each mode promises that looks for mistakes, and the build with -asan.
func inDebugModes(h how) caught { return caught{poison: h, guard: h, leak: h, asan: h} }

// andInTests adds what a test sees that takes its blocks from alloctest.New.
func (c caught) andInTests(h how) caught {
	c.inTests = h
	return c
}

// in is what a mode promises whose how is h.
func (c caught) in(h how) how {
	if h == (how{}) {
		return c.plain
	}
	return h
}

// A column is a build or a mode, in the table.
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

// A mode is a value of FREEHOLD_DEBUG that programs are run with, in the plain build.
type mode struct {
	variable string
	promise  func(c caught) how
}

var modes = []mode{
	{"poison", func(c caught) how { return c.in(c.poison) }},
	{"guard", func(c caught) how { return c.in(c.guard) }},
	{"leak", func(c caught) how { return c.in(c.leak) }},
}

// here is the promise for this build, or in this mode.
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
	words string // which the message contains
}

type kind string

const (
	notPromised kind = ""
	aPanic      kind = "panic"         // its text begins with "freehold: "
	outOfMemory kind = "out of memory" // an error that matches ErrOutOfMemory
	anError     kind = "error"
	aNo         kind = "false"                // the guilty call's answer
	aNil        kind = "nil"                  // likewise
	contained   kind = "panic, or no harm"    // a matter of nanoseconds which of them
	noHarm      kind = "no harm"              // the mistake is none in this mode
	aFault      kind = "fault"                // at the guilty instruction
	guardReport kind = "guard report"         // Explain's, of a fault at the guilty instruction
	leakReport  kind = "leak report"          // AtExit's, with the stack
	raceReport  kind = "race report"          // the race detector's
	raceOrPanic kind = "race report or panic" // whichever is first
	asanReport  kind = "asan report"          // the address sanitizer's
	goPointer   kind = "CheckPointers"        // finds it
	testFails   kind = "test fails"           // by the time that it ends
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

// inChild reports whether a promise is about a process as a whole.
func (h how) inChild() bool {
	switch h.kind {
	case notPromised, aFault, leakReport, raceReport, raceOrPanic, asanReport:
		return true
	}
	return false
}

// fault says what is wrong with an outcome where h is promised, "" if nothing.
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
