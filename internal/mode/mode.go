// Modes: the debugging modes that FREEHOLD_DEBUG switches on.

// Package mode reads the environment variable FREEHOLD_DEBUG, a list of modes with commas
// between them. A mode may have a value:
//
//	FREEHOLD_DEBUG=profile=65536,leak
//
// The variable is read once, when the program starts. An invalid mode or value is reported on
// standard error and is off.
package mode

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// known are the modes that exist.
var known = []string{
	"profile",
	"poison",
	"quarantine",
	"leak",
	"stats",
	"guard",
}

var given = parse(os.Getenv("FREEHOLD_DEBUG"), once(func(s string) { fmt.Fprintln(os.Stderr, s) }))

// once wraps report to print each text once, since several packages ask for the same mode.
func once(report func(string)) func(string) {
	var reported sync.Map
	return func(s string) {
		if _, found := reported.LoadOrStore(s, true); !found {
			report(s)
		}
	}
}

// set is the parsed variable: the value of each mode.
type set struct {
	values map[string]string
	report func(string)
}

// Bytes returns the value of a mode that takes a number of bytes, or byDefault if it is given
// without one. on is false if the mode is not given, or its value is no number or below least.
func Bytes(name string, least, byDefault int) (n int, on bool) {
	return given.bytes(name, least, byDefault)
}

const (
	// DefaultQuarantine is the size of the quarantine of poison, in bytes.
	DefaultQuarantine = 1 << 20

	// leastQuarantine is an error for smaller numbers: a quarantine would hold next to no block.
	leastQuarantine = 4 << 10
)

// Quarantine returns the bytes of freed blocks that each heap keeps back, red zones included. on is
// false if neither poison nor quarantine is given.
func Quarantine() (bytes int, on bool) { return given.quarantine() }

func (s set) quarantine() (bytes int, on bool) {
	bytes, on = s.bytes("quarantine", leastQuarantine, DefaultQuarantine)
	if poison := s.on("poison"); poison && !on {
		return DefaultQuarantine, true
	}
	return bytes, on
}

// On reports whether a mode that takes no value is given.
func On(name string) bool { return given.on(name) }

// OneIn returns N for a mode with the value 1/N, or 1 if it is given without a value; valued
// tells these apart. on is false if the mode is not given or its value is invalid.
func OneIn(name string) (n int, valued, on bool) { return given.oneIn(name) }

func parse(variable string, report func(string)) set {
	s := set{map[string]string{}, report}
	for item := range strings.SplitSeq(variable, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(item), "=")
		if name == "" {
			continue
		}
		if !slices.Contains(known, name) {
			report(fmt.Sprintf("freehold: FREEHOLD_DEBUG: no mode %q; there are %s", name, strings.Join(known, ", ")))
			continue
		}
		s.values[name] = value
	}
	return s
}

func (s set) on(name string) bool {
	value, on := s.values[name]
	if value != "" {
		s.report(fmt.Sprintf("freehold: FREEHOLD_DEBUG: %s=%s, want no value; the mode is off", name, value))
		return false
	}
	return on
}

func (s set) bytes(name string, least, byDefault int) (n int, on bool) {
	value, on := s.values[name]
	if !on || value == "" {
		return byDefault, on
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < least {
		s.report(fmt.Sprintf("freehold: FREEHOLD_DEBUG: %s=%s, want a number of bytes from %d on; the mode is off", name, value, least))
		return 0, false
	}
	return n, true
}

func (s set) oneIn(name string) (n int, valued, on bool) {
	value, on := s.values[name]
	if !on || value == "" {
		return 1, false, on
	}
	n, err := strconv.Atoi(strings.TrimPrefix(value, "1/"))
	if err != nil || n < 1 || !strings.HasPrefix(value, "1/") {
		s.report(fmt.Sprintf("freehold: FREEHOLD_DEBUG: %s=%s, want 1/N, or no value for all; the mode is off", name, value))
		return 0, false, false
	}
	return n, true, true
}
