// Flags: types of flags beyond the parser's own.

package gnu

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// A Switch is a flag without a value: --reverse=false is an error.
type Switch bool

func (*Switch) IsBool() bool { return true }

func (s *Switch) Decode(ctx *kong.DecodeContext) error {
	if ctx.Scan.Peek().Type == kong.FlagValueToken {
		return fmt.Errorf("it takes no value; got %v", ctx.Scan.Pop().Value)
	}
	*s = true
	return nil
}

// A Check is the value of -c, which is optional.
type Check string

const (
	NoCheck    Check = ""
	CheckFirst Check = "diagnose-first"
	CheckQuiet Check = "quiet"
)

func (*Check) IsBool() bool { return true }

func (c *Check) Decode(ctx *kong.DecodeContext) error {
	mode := CheckFirst
	if ctx.Scan.Peek().Type == kong.FlagValueToken {
		mode = Check(fmt.Sprint(ctx.Scan.Pop().Value))
	}
	if mode == "silent" {
		mode = CheckQuiet
	}
	switch {
	case mode != CheckFirst && mode != CheckQuiet:
		return fmt.Errorf("%q is not one of quiet, silent and diagnose-first", string(mode))
	case *c != NoCheck && *c != mode:
		return fmt.Errorf("%s and %s exclude each other", *c, mode)
	}
	*c = mode
	return nil
}

// One returns the value of a flag. The flag may only be repeated with the same value.
func One[T ~string](flag string, values []T) (T, error) {
	for _, v := range values {
		if v != values[0] {
			return "", cli.Usagef("%s: %q and %q: only one is allowed", flag, string(values[0]), string(v))
		}
	}
	if len(values) == 0 {
		return "", nil
	}
	return values[0], nil
}

// JoinValues joins each flag with its value if that begins with a minus, as in -o -x. The parser
// would take -x for a flag.
func JoinValues(args []string, parser *kong.Kong) (joined []string) {
	commands := parser.Model.Children
	sort := commands[slices.IndexFunc(commands, func(n *kong.Node) bool { return n.Name == "sort" })]
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return append(joined, args[i:]...)
		}
		if sep, ok := awaitsValue(arg, sort.Flags); ok && i+1 < len(args) && len(args[i+1]) > 1 && args[i+1][0] == '-' {
			i++
			arg += sep + args[i]
		}
		joined = append(joined, arg)
	}
	return joined
}

// awaitsValue reports whether the next argument is the value of arg: of a long flag, or of the last
// of several letters. sep is the separator for joining the two.
func awaitsValue(arg string, flags []*kong.Flag) (sep string, ok bool) {
	takesValue := func(name string) bool {
		return slices.ContainsFunc(flags, func(f *kong.Flag) bool {
			return !f.IsBool() && (name == "--"+f.Name || name == string(f.Short))
		})
	}
	if strings.HasPrefix(arg, "--") {
		return "=", takesValue(arg)
	}
	letters, isFlag := strings.CutPrefix(arg, "-")
	for i := range letters {
		if takesValue(letters[i : i+1]) {
			return "", isFlag && i == len(letters)-1
		}
	}
	return "", false
}
