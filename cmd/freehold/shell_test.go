package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/freehold-go/freehold/internal/test/filetest"
)

// parser parses a command line.
func parser(t *testing.T) *kong.Kong {
	t.Helper()
	k, err := kong.New(&commands{}, kong.Name("freehold"), kong.Vars{"version": version()})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Every command that people call has examples, and they are right.
func TestExamples(t *testing.T) {
	for _, command := range parser(t).Model.Leaves(true) {
		n := 0
		for line := range strings.Lines(command.Detail) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), "#")
			for _, part := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune("|<>()", r) }) {
				args := strings.Fields(part)
				if len(args) == 0 || args[0] != "freehold" {
					continue
				}
				k := parser(t)
				if args = args[1:]; sorts(args) {
					args = program(args).Args(k, args)
				}
				if ctx, err := k.Parse(args); err != nil || ctx.Selected().Name != command.Name {
					t.Errorf("%s: %s: %v", command.Name, part, err)
				}
				n++
			}
		}
		if n == 0 && command.Name != "version" {
			t.Errorf("%s has no examples", command.Name)
		}
	}
}

// The manual page has every command, argument and flag, and groff finds nothing wrong in it.
func TestManualPage(t *testing.T) {
	code, page, errs := command(t.Context(), "man")
	if code != 0 || errs != "" {
		t.Fatalf("exit code %d, %q", code, errs)
	}
	for _, c := range parser(t).Model.Leaves(true) {
		want := []string{c.Summary(), c.Help, c.Detail}
		for _, p := range c.Positional {
			want = append(want, p.Help)
		}
		for _, f := range c.Flags {
			if !f.Hidden {
				want = append(want, f.Summary(), f.Help)
			}
		}
		for _, w := range want {
			if !strings.Contains(page, roff(w)) {
				t.Errorf("%s: the page has no %q", c.Name, w)
			}
		}
	}
	for _, w := range []string{"\n.B \\-z, \\-\\-zero\\-terminated\n", `\e0 is NUL`} { // else a viewer shows other characters
		if !strings.Contains(page, w) {
			t.Errorf("the page has no %q", w)
		}
	}
	if got := roff("a\n.b\n'c"); got != "a\n\\&.b\n\\&'c" {
		t.Errorf("lines that begin as requests do are %q", got)
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip(err)
	}
	cmd := exec.CommandContext(t.Context(), groff, "-man", "-Tutf8", "-ww", "-z")
	cmd.Stdin = strings.NewReader(page)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("groff: %v: %s", err, out)
	}
}

// A shell that asks gets commands, flags and their values.
func TestCompletion(t *testing.T) {
	for line, want := range map[string]string{
		"freehold so":          "sort\n",
		"freehold sort --para": "--parallel\n",
		"freehold overlay peb": "pebble\n",
	} {
		code, out, errs := processOf(t, []string{"COMP_LINE=" + line}, os.Args[0])
		if code != 0 || out != want || errs != "" {
			t.Errorf("%s: exit code %d, %q, %q, want %q", line, code, out, errs, want)
		}
	}
	dir := t.TempDir()
	self, err := filepath.Abs(os.Args[0])
	filetest.Must(t, err)
	if err := os.Symlink(self, filepath.Join(dir, "freehold")); err != nil {
		t.Skip(err)
	}
	for _, shell := range []struct{ name, script, want string }{
		{"bash", `source <(freehold completion bash); complete -p freehold`, "freehold freehold\n"},
		{"fish", `freehold completion fish | source; complete -C "freehold ov"; complete -C "freehold overlay "`, "overlay\nbadger\nfreehold\npebble\nristretto\n"}, // and a file
		{"zsh", `autoload -U compinit && compinit -D; source <(freehold completion zsh); echo $_comps[freehold]`, "-C freehold\n"},
	} {
		path, err := exec.LookPath(shell.name)
		if err != nil {
			continue
		}
		cmd := exec.CommandContext(t.Context(), path, "-c", shell.script)
		cmd.Dir = dir // fish completes files too
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "HOME="+dir)
		out, err := cmd.CombinedOutput()
		if got := strings.ReplaceAll(string(out), "'", ""); err != nil || !strings.HasSuffix(got, shell.want) {
			t.Errorf("%s: %v: %s", shell.name, err, out)
		}
	}
}
