// Mutate breaks promises on purpose, one at a time, and says whether a test
// notices.
//
//	go run ./scripts/mutate [-run regexp] [-j n] [-timeout d]
//
// The promises are in the lists beside this file, heap.txt and others; list.go
// has their form. Each mutation is built and tested by way of -overlay, so that
// the checkout is never written to, and is then one of these:
//
//	killed    a test failed, or ran into the timeout: it is named
//	SURVIVED  every test passed: a test is missing
//	error     the mutation does not fit the code any more, does not build, or
//	          its tests fail without it
//
// The exit status is 1 unless every mutation was killed.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

func main() {
	run := flag.String("run", "", "try only the mutations whose `regexp` matches \"list: name\"")
	jobs := flag.Int("j", 1, "try `n` mutations at a time")
	timeout := flag.Duration("timeout", time.Minute, "a test that takes longer is a failed one")
	flag.Parse()
	if err := mutate(os.Stdout, *run, *jobs, *timeout); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// mutate tries the mutations that match, and writes the outcome of each to w.
func mutate(w io.Writer, match string, jobs int, timeout time.Duration) error {
	re, err := regexp.Compile(match)
	if err != nil {
		return err
	}
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/freehold-go/freehold").Output()
	if err != nil {
		return fmt.Errorf("finding the module: %w", err)
	}
	all, err := readLists(lists)
	if err != nil {
		return err
	}
	var chosen []mutation
	for _, m := range all {
		if re.MatchString(m.name) {
			chosen = append(chosen, m)
		}
	}
	return tryAll(w, strings.TrimSpace(string(dir)), chosen, jobs, timeout)
}

// tryAll tries the mutations of the module in dir, so many at a time.
func tryAll(w io.Writer, dir string, all []mutation, jobs int, timeout time.Duration) error {
	r := &runner{dir: dir, timeout: timeout, plain: map[string]func() error{}}
	counts := map[string]int{}
	slots := make(chan struct{}, max(jobs, 1))
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, m := range all {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			verdict, reason := r.try(m)
			mu.Lock()
			defer mu.Unlock()
			counts[verdict]++
			fmt.Fprintf(w, "%-8s  %s: %s\n", verdict, m.name, reason)
		})
	}
	wg.Wait()
	if len(all) == 0 || counts["killed"] < len(all) {
		return fmt.Errorf("of %d mutations %d survived, and %d could not be tried", len(all), counts["SURVIVED"], counts["error"])
	}
	return nil
}

// runner tries mutations of the module in dir.
type runner struct {
	dir     string
	timeout time.Duration

	mu    sync.Mutex
	plain map[string]func() error // by test: whether it passes on the code as it is
}

// try builds and tests one mutation.
func (r *runner) try(m mutation) (verdict, reason string) {
	by, err := r.killer(m)
	switch {
	case err != nil:
		return "error", err.Error()
	case by == "":
		return "SURVIVED", "go test " + m.test
	}
	return "killed", by
}

// killer returns the test that fails because of m, or "" if all pass.
func (r *runner) killer(m mutation) (string, error) {
	path := filepath.Join(r.dir, filepath.FromSlash(m.file))
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	mutated, err := m.apply(string(source))
	if err != nil {
		return "", err
	}
	if err := r.passesPlain(m.test); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	replacement, overlay := filepath.Join(temp, filepath.Base(path)), filepath.Join(temp, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {path: replacement}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(replacement, []byte(mutated), 0o666); err != nil {
		return "", err
	}
	if err := os.WriteFile(overlay, replace, 0o666); err != nil {
		return "", err
	}
	return r.test(m.test, "-overlay="+overlay, "-count=1")
}

// passesPlain returns an error unless the tests pass on the code as it is, for
// then their failure says nothing. Each is tried once.
func (r *runner) passesPlain(test string) error {
	r.mu.Lock()
	f := r.plain[test]
	if f == nil {
		f = sync.OnceValue(func() error {
			by, err := r.test(test)
			if err == nil && by != "" {
				err = fmt.Errorf("go test %s fails without the mutation: %s", test, by)
			}
			return err
		})
		r.plain[test] = f
	}
	r.mu.Unlock()
	return f()
}

var (
	failure = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)
	timeout = regexp.MustCompile(`(?m)^panic: test timed out(?s:.*?)\t\t(\w+)`)
	begun   = regexp.MustCompile(`(?m)^=== RUN +(\w+)`)
)

// test runs go test and returns what failed, or "".
func (r *runner) test(test string, flags ...string) (string, error) {
	words := strings.Fields(test)
	env := os.Environ()
	for len(words) > 0 && strings.Contains(words[0], "=") && words[0][0] != '-' {
		env, words = append(env, words[0]), words[1:]
	}
	args := append([]string{"test", "-v", "-vet=off", "-failfast", "-timeout=" + r.timeout.String()}, flags...)
	cmd := exec.Command("go", append(args, words...)...)
	cmd.Dir, cmd.Env = r.dir, env
	output, err := cmd.CombinedOutput()
	out := string(output)
	last := begun.FindAllStringSubmatch(out, -1)
	switch {
	case strings.Contains(out, " failed]\n"): // build or setup
		return "", fmt.Errorf("it does not build: %s", out)
	case err == nil && !strings.Contains(out, "--- PASS"):
		return "", fmt.Errorf("go test %s: no test runs", test)
	case err == nil:
		return "", nil
	case timeout.MatchString(out):
		return timeout.FindStringSubmatch(out)[1] + ", which timed out", nil
	case failure.MatchString(out):
		return failure.FindStringSubmatch(out)[1], nil
	case len(last) > 0:
		return last[len(last)-1][1] + ", which crashed", nil
	}
	return "", fmt.Errorf("go test %s: %w: %s", test, err, out)
}
