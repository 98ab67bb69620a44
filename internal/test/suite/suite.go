// Suite: a library's own tests, run on a copy of the library in which freehold allocates.
//
//	module cache --copy--> temporary folder --Write, Edit--> its default allocator is freehold's
//	                                        --Test---------> go test there
//
// The copy's go.mod takes the core and the adapter from this clone. The library's tests may
// need modules that nothing here needs: the go command downloads them.

// Package suite runs the tests of other libraries with freehold inside, and measures what
// memory a benchmark takes.
package suite

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

const core = "github.com/freehold-go/freehold"

// A Module is a copy of a module's source.
type Module struct{ Dir string }

// Copy returns a copy of a module that the module under test requires, in the version that it
// requires. The copy may import the core and the module under test.
func Copy(t testing.TB, module string) *Module {
	t.Helper()
	m := copyOf(t, run(t, ".", "list", "-m", "-f", "{{.Dir}}", module))
	m.replaceBy(t, core)
	m.replaceBy(t, run(t, ".", "list", "-f", "{{.Module.Path}}", "."))
	return m
}

// Download returns a copy of a module that nothing here requires, as module@version. The
// copy may import the core.
func Download(t testing.TB, module string) *Module {
	t.Helper()
	var found struct{ Dir string }
	if err := json.Unmarshal([]byte(run(t, t.TempDir(), "mod", "download", "-json", module)), &found); err != nil {
		t.Fatal(err)
	}
	m := copyOf(t, found.Dir)
	m.replaceBy(t, core)
	return m
}

func copyOf(t testing.TB, dir string) *Module {
	t.Helper()
	m := &Module{t.TempDir()}
	if err := os.CopyFS(m.Dir, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(m.Dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(path, 0o755) // the module cache is read-only
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// replaceBy makes the copy's go.mod take a module from this clone.
func (m *Module) replaceBy(t testing.TB, module string) {
	t.Helper()
	dir := run(t, ".", "list", "-m", "-f", "{{.Dir}}", module)
	m.Go(t, "mod", "edit", "-require="+module+"@v0.1.0", "-replace="+module+"="+dir)
}

// Go runs the go command in the copy and returns its output.
func (m *Module) Go(t testing.TB, args ...string) string {
	t.Helper()
	return run(t, m.Dir, args...)
}

// Write writes a file of the copy.
func (m *Module) Write(t testing.TB, file, text string) {
	t.Helper()
	path := filepath.Join(m.Dir, file)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// Edit replaces the one place where the copy's file has old.
func (m *Module) Edit(t testing.TB, file, old, new string) {
	t.Helper()
	text := m.Read(t, file)
	if n := strings.Count(text, old); n != 1 {
		t.Fatalf("%s has %q %d times, want once", file, old, n)
	}
	m.Write(t, file, strings.Replace(text, old, new, 1))
}

// Drop removes functions from the copy's file.
func (m *Module) Drop(t testing.TB, file string, functions ...string) {
	t.Helper()
	for _, f := range functions {
		text := m.Read(t, file)
		body := regexp.MustCompile(`(?ms)^func ` + f + `\(.*?^}\n`).FindString(text)
		if body == "" {
			t.Fatalf("%s has no function %s", file, f)
		}
		m.Edit(t, file, body, "")
	}
}

// ReplaceCode replaces the code of the copy's root package, but not its tests, by files of the module
// under test.
func (m *Module) ReplaceCode(t testing.TB, files ...string) {
	t.Helper()
	old, err := filepath.Glob(filepath.Join(m.Dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range old {
		if !strings.HasSuffix(file, "_test.go") {
			os.Remove(file)
		}
	}
	here := Module{"."}
	for _, file := range files {
		m.Write(t, file, here.Read(t, file))
	}
}

// RunExample runs the module in the folder example, whose go.mod replaces a library by the module
// under test, ".." there, and the core, "../../..". It returns the output.
func RunExample(t testing.TB) string {
	t.Helper()
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	m := Module{t.TempDir()} // outside of the workspace
	if err := os.CopyFS(m.Dir, os.DirFS("example")); err != nil {
		t.Fatal(err)
	}
	m.Edit(t, "go.mod", "=> ..\n", "=> "+here+"\n")
	m.Edit(t, "go.mod", "=> ../../..\n", "=> "+filepath.Dir(filepath.Dir(here))+"\n")
	m.Go(t, "mod", "tidy") // as documented; it also resolves the imports of the module's tests
	return m.Go(t, "run", ".")
}

// Read returns a file of the copy.
func (m *Module) Read(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(m.Dir, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Test runs go test in the copy and logs how many tests passed and were skipped. It fails t
// with the output of each test that fails, and if fewer than atLeast passed: subtests do not
// count.
func (m *Module) Test(t testing.TB, atLeast int, args ...string) {
	t.Helper()
	cmd := command(m.Dir, append([]string{"test", "-json", "-trimpath", "-vet=off"}, args...)...)
	out, err := cmd.Output()
	passed, skipped, failures := tally(out)
	t.Logf("go test %s: %d passed, %d skipped themselves", strings.Join(args, " "), passed, skipped)
	switch {
	case failures != "" || err != nil:
		t.Errorf("%v: %s", err, failures)
	case passed < atLeast:
		t.Errorf("%d tests passed, want %d at least", passed, atLeast)
	}
}

// Rerun runs the running test in another process, with env added to its environment, and returns
// its output.
func Rerun(t *testing.T, env ...string) string {
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), env...)
	out, _ := cmd.CombinedOutput()
	return string(out)
}

// tally returns the counts of tests by go test's output, and the output of what failed.
func tally(events []byte) (passed, skipped int, failures string) {
	type key struct{ Package, ImportPath, Test string }
	output := map[key]string{}
	for d := json.NewDecoder(strings.NewReader(string(events))); ; {
		var e struct {
			key
			Action, Output string
		}
		if d.Decode(&e) != nil {
			return passed, skipped, failures
		}
		test := e.Test != "" && !strings.Contains(e.Test, "/")
		switch e.Action {
		case "output", "build-output":
			output[e.key] += e.Output
		case "pass":
			if test {
				passed++
			}
		case "skip":
			if test {
				skipped++
			}
		case "fail", "build-fail":
			failures += output[e.key]
		}
	}
}

// run runs the go command in dir and returns its output.
func run(t testing.TB, dir string, args ...string) string {
	t.Helper()
	out, err := command(dir, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// command returns a go command in dir. In a copy it may add to go.mod and go.sum.
func command(dir string, args ...string) *exec.Cmd {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	if dir != "." {
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	}
	return cmd
}

// AwaitCollected waits until the collector has closed dropped owners, so that live returns at most
// most.
func AwaitCollected(t testing.TB, live func() int, most int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); live() > most; time.Sleep(time.Millisecond) {
		if runtime.GC(); time.Now().After(end) {
			t.Fatalf("%d bytes are live, and at most %d should be", live(), most)
		}
	}
}
