package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// A workshop builds programs of this repository, each once.
type workshop struct {
	dir   string
	built map[string]string // by flag and package
}

// outputs makes the outputs of the guide that come from other programs than this test.
func (w workshop) outputs() map[string]func(t *testing.T) string {
	return map[string]func(t *testing.T) string{
		"leak":  func(t *testing.T) string { return w.made(t, "", "FREEHOLD_DEBUG=leak", "leak") },
		"atend": func(t *testing.T) string { return w.made(t, "", "FREEHOLD_DEBUG=stats", "leak") },
		"poison": func(t *testing.T) string {
			return w.made(t, "", "FREEHOLD_DEBUG=poison", "useafterfree", "\n\ngoroutine ") + "\n" +
				w.made(t, "", "FREEHOLD_DEBUG=poison", "overflow", "\n\ngoroutine ")
		},
		"quarantine": func(t *testing.T) string {
			return w.made(t, "", "FREEHOLD_DEBUG=quarantine=100000000", "useafterfree", "\n\t\tallocated at:")
		},
		"guard": func(t *testing.T) string {
			return w.guarded(t, "FREEHOLD_DEBUG=guard", "useafterfree") + "\n" + w.guarded(t, "FREEHOLD_DEBUG=guard", "overflow")
		},
		"production": func(t *testing.T) string {
			return w.guarded(t, "FREEHOLD_DEBUG=guard=1/100", "useafterfree 10000")
		},
		"checkpointers": func(t *testing.T) string { return w.made(t, "", "FREEHOLD_DEBUG=profile=1", "gopointer") },
		"race":          func(t *testing.T) string { return w.made(t, "-race", "", "race", "\n\nGoroutine ") },
		"asan": func(t *testing.T) string {
			return w.made(t, "-asan", "", "useafterfree", "\n\nAddress ") + "\n" + w.made(t, "-asan", "", "overflow", "\n\nAddress ")
		},
		"vet": func(t *testing.T) string {
			tool := w.build(t, "", "../../analysis/cmd/freeholdvet")
			out, _ := exec.Command("go", "vet", "-vettool="+tool, "./mistakes").CombinedOutput()
			lines := strings.SplitAfter(string(out), "\n") // the program's order is not fixed
			lines = slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, ": \t") })
			slices.Sort(lines)
			return "$ go vet -vettool=$(which freeholdvet) ./mistakes\n" + strings.Join(lines, "")
		},
		"alloctest": func(t *testing.T) string {
			cmd := exec.Command(os.Args[0], "-test.run=^TestSessionsEnd$")
			cmd.Env = append(os.Environ(), "GUIDE=1")
			out, _ := cmd.Output()
			text := strings.ReplaceAll(string(out), "github.com/freehold-go/freehold/examples/debugging.", "sessions.")
			return "$ go test\n" + regexp.MustCompile(`\S+/(\w+_test\.go)`).ReplaceAllString(text, "$1")
		},
	}
}

// made builds the program in mistakes with flag, makes it make a mistake, and returns its output
// up to the first of the given texts.
func (w workshop) made(t *testing.T, flag, variable, mistake string, upTo ...string) string {
	t.Helper()
	cmd := exec.Command(w.build(t, flag, "./mistakes"), strings.Fields(mistake)...)
	cmd.Env = append(os.Environ(), "FREEHOLD_DEBUG=", variable)
	out, _ := cmd.CombinedOutput()
	text := string(out)
	for _, words := range upTo {
		text, _, _ = strings.Cut(text, words)
	}
	text = strings.ReplaceAll(text, "github.com/freehold-go/freehold/examples/debugging/mistakes/", "")
	text = regexp.MustCompile(`(?m)^=+\n`).ReplaceAllString(text, "")
	if flag != "" {
		flag = "go build " + flag + " ./mistakes && "
	}
	return "$ " + flag + strings.TrimSpace(variable+" ./mistakes "+mistake) + "\n" + strings.TrimRight(text, "\n") + "\n"
}

// guarded is made for a mistake that faults: it returns the head of the crash text, the
// monitor's line near it, and the report.
func (w workshop) guarded(t *testing.T, variable, mistake string) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("faults are reported on Linux")
	}
	text := w.made(t, "", variable, mistake)
	lead := regexp.MustCompile(`\nfreehold: .* last\n`).FindString(text)
	head, _, _ := strings.Cut(strings.Replace(text, lead, "", 1), "\n[signal ")
	at := strings.LastIndex(text, "\nfreehold: ")
	if lead == "" || at < 0 {
		t.Fatalf("no report in %s", text)
	}
	return head + "\n" + lead + "...\n" + text[at+1:]
}

// build builds a program of this repository and returns its path.
func (w workshop) build(t *testing.T, flag, dir string) string {
	t.Helper()
	if testing.Short() && (flag != "" || strings.HasPrefix(dir, "..")) {
		t.Skip("it builds much")
	}
	key := flag + dir
	if w.built[key] == "" {
		program := filepath.Join(w.dir, strconv.Itoa(len(w.built))+".exe")
		args := []string{"build", "-trimpath", "-o", program}
		if flag != "" {
			args = append(args, flag)
		}
		out, err := exec.Command("go", append(args, dir)...).CombinedOutput()
		switch {
		case err == nil:
		case flag == "" && dir == "./mistakes" && !errors.Is(err, exec.ErrNotFound):
			t.Fatalf("%v: %s", err, out)
		default: // no C compiler, or no workspace
			t.Skipf("go build %s %s: %v: %s", flag, dir, err, out)
		}
		w.built[key] = program
	}
	return w.built[key]
}

func openSession(a freehold.Allocator) []byte { return freehold.Must(a.Zeroed(64, 8)) }

// The test that the guide shows finds leaks.
func TestSessionsEnd(t *testing.T) {
	if os.Getenv("GUIDE") == "" {
		t.Skip("it is run for the guide")
	}
	a := alloctest.New(t)
	first, second := openSession(a), openSession(a)
	first[0], second[0] = 1, 2
	a.Free(first)
}
