// The manual page, from the same tags as the help.

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// manCommand prints the manual page.
type manCommand struct{}

func (manCommand) Help() string {
	return examples(
		"freehold man | man -l -                                 # read it",
		"freehold man >~/.local/share/man/man1/freehold.1        # install it",
	)
}

func (manCommand) Run(k *kong.Context, s cli.Streams) error {
	writeMan(s.Out, k.Model)
	return nil
}

// roff escapes text, so that a hyphen stays a typed hyphen, and a dot at the start of a line is no
// request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// writeMan writes the page of all commands in the format of man(7).
func writeMan(w io.Writer, app *kong.Application) {
	say := func(format string, a ...string) {
		escaped := make([]any, len(a))
		for i, text := range a {
			escaped[i] = roff(text)
		}
		fmt.Fprintf(w, format+"\n", escaped...)
	}
	about, _, _ := strings.Cut(app.Help, ".")
	say(".TH %s 1\n.SH NAME\n%s \\- %s", strings.ToUpper(app.Name), app.Name, about)
	say(".SH SYNOPSIS\n.B %s\n.I command\n[flags]\n.SH COMMANDS", app.Name)
	for _, command := range app.Leaves(true) {
		say(".SS %s\n%s", command.Summary(), command.Help)
		for _, p := range command.Positional {
			say(".TP\n.I %s\n%s", p.Summary(), p.Help)
		}
		for _, f := range command.Flags {
			if !f.Hidden {
				short := ""
				if f.Short != 0 {
					short = fmt.Sprintf("-%c, ", f.Short)
				}
				say(".TP\n.B %s\n%s", short+f.Summary(), f.Help)
			}
		}
		if command.Detail != "" {
			say(".PP\n.nf\n%s\n.fi", command.Detail)
		}
	}
	say(".SH EXIT STATUS\n0 if all went well, 1 for a failure, 2 for wrong flags, 130 if interrupted; for %s, 1 for disorder and 2 for a failure.", "sort")
}

// examples are lines of a shell, as --help and the manual page show them.
func examples(lines ...string) string {
	return "Examples:\n\n    " + strings.Join(lines, "\n    ")
}
