// Flags of freehold sort that the parser does not have.

package main

import (
	"fmt"

	"github.com/alecthomas/kong"
)

// A sortSwitch is a flag without a value: --reverse=false is a mistake.
type sortSwitch bool

func (*sortSwitch) IsBool() bool { return true }

func (s *sortSwitch) Decode(ctx *kong.DecodeContext) error {
	if ctx.Scan.Peek().Type == kong.FlagValueToken {
		return fmt.Errorf("it takes no value, such as %v", ctx.Scan.Pop().Value)
	}
	*s = true
	return nil
}

// A sortCheck is the value of -c, which may be left out.
type sortCheck string

const (
	noCheck    sortCheck = ""
	checkFirst sortCheck = "diagnose-first"
	checkQuiet sortCheck = "quiet"
)

func (*sortCheck) IsBool() bool { return true }

func (c *sortCheck) Decode(ctx *kong.DecodeContext) error {
	mode := checkFirst
	if ctx.Scan.Peek().Type == kong.FlagValueToken {
		mode = sortCheck(fmt.Sprint(ctx.Scan.Pop().Value))
	}
	if mode == "silent" {
		mode = checkQuiet
	}
	switch {
	case mode != checkFirst && mode != checkQuiet:
		return fmt.Errorf("%q is none of quiet, silent and diagnose-first", string(mode))
	case *c != noCheck && *c != mode:
		return fmt.Errorf("%s and %s exclude each other", *c, mode)
	}
	*c = mode
	return nil
}

// theOne returns the value of a flag that may be repeated with the same value only.
func theOne[T ~string](flag string, values []T) (T, error) {
	for _, v := range values {
		if v != values[0] {
			return "", usagef("%s: %q and %q: there can be one only", flag, string(values[0]), string(v))
		}
	}
	if len(values) == 0 {
		return "", nil
	}
	return values[0], nil
}
