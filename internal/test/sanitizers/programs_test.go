//go:build race || asan

// Programs: each runs in a child process, and its output is the report.

package sanitizers

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/internal/test/child"
)

// A program makes one mistake, on the line that ends with "// bug: " and its name. Its twin does
// the same without the mistake.
type program struct {
	name    string
	do      func()
	twin    func()
	inCopy  bool // the access is inside copy, so the report may lack its line
	reports string
}

const childVariable = "FREEHOLD_PROGRAM"

func TestMain(m *testing.M) {
	name := os.Getenv(childVariable)
	if name == "" {
		os.Exit(m.Run())
	}
	name, twin := strings.CutSuffix(name, twinSuffix)
	i := slices.IndexFunc(programs, func(p program) bool { return p.name == name })
	run := programs[i].do
	if twin {
		run = programs[i].twin
	}
	run()
	fmt.Println(theEnd)
}

const (
	twinSuffix = ", right"
	theEnd     = "no report so far"
)

// lines returns the lines of the bugs in a source file of this package, in the form of reports.
func lines(t *testing.T, file string) map[string]string {
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for i, line := range strings.Split(string(source), "\n") {
		if _, name, found := strings.Cut(line, "// bug: "); found {
			all[name] = fmt.Sprintf("%s:%d", file, i+1)
		}
	}
	return all
}

func childOf(name string) (output string, err error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+name, "GORACE=")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// testPrograms runs the programs of a source file and their twins.
func testPrograms(t *testing.T, file string) {
	child.Need(t)
	at := lines(t, file)
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			out, err := childOf(p.name)
			if err == nil || !strings.Contains(out, p.reports) {
				t.Errorf("%v, want a report with %q:\n%s", err, p.reports, out)
			}
			if line := at[p.name]; line == "" || !p.inCopy && !strings.Contains(guilty(out), line) {
				t.Errorf("the access is at %q, want %q:\n%s", guilty(out), line, out)
			}
			if out, err := childOf(p.name + twinSuffix); err != nil || out != theEnd+"\n" {
				t.Errorf("the correct program: %v\n%s", err, out)
			}
		})
	}
}
