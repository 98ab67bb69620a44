package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// The demo starts its own program as a child. Within tests that program is the
// test binary, which is then the command itself.
const asCommand = "FREEHOLD_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" && !(len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "-test.")) {
		main()
	}
	os.Setenv(asCommand, "1")
	os.Exit(m.Run())
}

// command runs the command line and returns what it did.
func command(ctx context.Context, args ...string) (code int, out, err string) {
	var o, e bytes.Buffer
	code = run(ctx, args, cli.Streams{Out: &o, Err: &e})
	return code, o.String(), e.String()
}

func TestCommandLine(t *testing.T) {
	dir := t.TempDir()
	tests := []struct {
		args string
		code int
		want string // somewhere in the output or the errors
	}{
		{"", 0, "Usage: lab"},
		{"memtest --help", 0, "--settle"},
		{"report --help", 0, "list, gc, sawtooth"},
		{"--version", 0, version() + "\n"},

		{"memtest --high=", 2, `--high: "" is no size`},
		{"memtest --html=", 2, "--html: the name of a file is missing"},
		{"memtest --csv=", 2, "--csv: the name of a file is missing"},
		{"memtest --backend=", 2, `no backend is called ""; there are: freehold, go, libc, jemalloc`},
		{"memtest --high 0", 2, "--high 0 B is too little"},
		{"memtest --limit 0", 2, "--limit 0: at least a byte is needed; without --limit there is none"},
		{"memtest --high 1GiB --goroutines 0", 2, "--goroutines 0: at least one is needed"},
		{"memtest --nothing", 2, "unknown flag --nothing"},
		{"memtest extra", 2, "unexpected argument extra"},
		{"memtest --backend calloc", 2, `no backend is called "calloc"; there are: freehold, go, libc, jemalloc`},
		{"memtest --sizes huge", 2, `--sizes must be one of "big","small","both"`},
		{"memtest --high much", 2, `"much" is no size: write bytes, or a number with KiB, MiB, GiB or TiB (powers of 1024) or KB, MB, GB or TB (of 1000)`},
		{"memtest --high 1MiB --sizes small --low 1MiB", 2, "--low 1.00 MiB is not below --high 1.00 MiB"},
		{"memtest --high 1GiB --low 2GiB", 2, "nothing to free"},
		{"memtest --high 1GiB --cycles 0", 2, "--cycles 0"},
		{"memtest --high 1GiB --cycles=-3", 2, "--cycles -3"},
		{"memtest --high 1GiB --goroutines=-1", 2, "--goroutines -1"},
		{"memtest --high 1GiB --settle=-1s", 2, "--settle -1s"},
		{"memtest --high 1GiB --settle soon", 2, "--settle"},
		{"memtest --high 7MiB --goroutines 2", 2, "each of the 2 goroutines needs room"},
		{"memtest --high 1024TiB", 2, "or add --force"},
		{"memtest --high 1024TiB --force", 2, "the table of that many chunks would take more than"},
		{"memtest --high 1024TiB --force --sizes small", 2, "the table of that many chunks would take more than"},
		{"memtest --high 7000000TiB --force", 2, "the table of that many chunks would take more than"},
		{"memtest --backend go --limit 1GiB", 2, "has no hard limit"},
		{"memtest --backend libc --limit 1GiB", 2, "has no hard limit"},
		{"memtest --high 64MiB --csv " + dir, 2, "cannot write"},
		{"memtest --high 64MiB --csv " + dir + "/no/such/folder/a.csv", 2, "cannot write"},
		{"memtest --high 64MiB --html " + dir + "/no/a.html", 2, "--html: cannot write"},

		{"memtest --high 64MiB --csv - --html -", 2, "--csv and --html both write -"},
		{"report nothing", 2, `no story is called "nothing"; there are: list, gc, sawtooth`},
		{"report list --nodes 0", 2, "--nodes 0"},
		{"report --cycles 0", 2, "--cycles 0: at least one is needed"},
		{"report --settle=-1s", 2, "--settle -1s"},
		{"report --high 0", 2, "--high 0 B is too little"},
		{"report --backend=", 2, "--backend: a name is missing"},
		{"report --backend go,,arena", 2, "--backend: a name is missing"},
		{"report --html=", 2, "--html: the name of a file is missing"},
		{"report list --nodes 100000000000", 2, "more than half"},
		{"report sawtooth --high 1TiB", 2, "more than a third"},
		{"report gc --live 1KiB", 2, "--live 1.00 KiB is too little"},
		{"report gc --live 1000TiB", 2, "--live 1000 TiB: array of pointers (Go heap, default) may take"},
		{"report sawtooth --high 1MiB", 2, "too little"},
		{"report --backend calloc", 2, `nothing is called "calloc"; there are: go, freehold, arena, pool, libc, jemalloc`},
		{"report --html " + dir + "/no/a.html", 2, "cannot write"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			code, out, err := command(t.Context(), strings.Fields(tt.args)...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			if !strings.Contains(out+err, tt.want) {
				t.Errorf("printed %q and %q, want %q in it", out, err, tt.want)
			}
			if code == cli.Misused && out != "" {
				t.Errorf("a wrong flag printed results: %q", out)
			}
		})
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("wrong flags left %v behind", left)
	}
}

// broken is a writer that takes some bytes and then no more.
type broken struct{ left int }

var errBroken = errors.New("no space left")

func (b *broken) Write(p []byte) (int, error) {
	if len(p) > b.left {
		return 0, errBroken
	}
	b.left -= len(p)
	return len(p), nil
}

// A report that cannot be written is a failure, whatever part of it is lost.
func TestReportThatCannotBeWritten(t *testing.T) {
	for _, args := range [][]string{
		{"--help"}, {"--version"},
		tinyRun,
		append(slices.Clone(tinyRun), "--csv", "-"),
		append([]string{"report", "list", "--backend", "go"}, tinyTour...),
		append([]string{"report", "list", "--backend", "go", "--html", "-"}, tinyTour...),
	} {
		for _, room := range []int{0, 200} {
			if len(args) <= 2 && room > 0 {
				continue
			}
			var errs bytes.Buffer
			code := run(t.Context(), args, cli.Streams{Out: &broken{room}, Err: &errs})
			if n := strings.Count(errs.String(), errBroken.Error()); code != cli.Failed || n != 1 || !strings.Contains(errs.String(), "lab: writing standard output: no space left\n") {
				t.Errorf("%v with room for %d bytes: exit code %d, %q", args, room, code, errs.String())
			}
		}
	}
}

// The same where people read the report on standard error.
func TestReportThatIsLostBesideAFile(t *testing.T) {
	var out bytes.Buffer
	code := run(t.Context(), append(slices.Clone(tinyRun), "--csv", "-"), cli.Streams{Out: &out, Err: &broken{200}})
	if code != cli.Failed {
		t.Errorf("exit code %d, want %d", code, cli.Failed)
	}
	checkRows(t, out.String(), 3, true)
}

// An interrupted run says so, and also what it lost.
func TestInterruptedAndUnwritable(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var errs bytes.Buffer
	code := run(ctx, tinyRun, cli.Streams{Out: &broken{}, Err: &errs})
	const want = "lab: interrupted\nlab: writing standard output: no space left\n"
	if code != cli.Failed || errs.String() != want {
		t.Errorf("exit code %d, %q, want %d, %q", code, errs.String(), cli.Failed, want)
	}
}

// commandProcess does the same in a process of its own, for what changes the process.
func commandProcess(t *testing.T, env []string, args ...string) (code int, out, err string) {
	t.Helper()
	exe, failed := os.Executable()
	if failed != nil {
		t.Fatal(failed)
	}
	return processOf(t, env, exe, args...)
}

// processOf runs any program.
func processOf(t *testing.T, env []string, program string, args ...string) (code int, out, err string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), env...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	if failed := cmd.Run(); failed != nil && cmd.ProcessState == nil {
		t.Fatal(failed)
	}
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

var control = regexp.MustCompile(`[\x00-\x09\x0b-\x1f\x7f]`)

// checkPlain fails if text has anything that only a terminal understands.
func checkPlain(t *testing.T, text string) {
	t.Helper()
	if at := control.FindString(text); at != "" {
		t.Errorf("piped output has the control character %q:\n%s", at, text)
	}
}
