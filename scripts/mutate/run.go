// Runs: one mutation, built and tested.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

type verdict int

const (
	killed verdict = iota
	survived
	failed
	numVerdicts = iota
)

func (v verdict) String() string { return [numVerdicts]string{"killed", "SURVIVED", "error"}[v] }

// outcome is what became of a mutation.
type outcome struct {
	verdict verdict
	reason  string
	took    time.Duration
}

// runner tries mutations of the module in dir.
type runner struct {
	dir     string
	timeout time.Duration

	mu    sync.Mutex
	plain map[string]func() error // by test: whether it passes on the code as it is
}

func newRunner(dir string, timeout time.Duration) *runner {
	return &runner{dir: dir, timeout: timeout, plain: map[string]func() error{}}
}

// tryAll tries the mutations, so many at a time, and calls done after each. The
// outcomes are in the mutations' order.
func (r *runner) tryAll(ctx context.Context, all []mutation, jobs int, done func(mutation, outcome)) []outcome {
	outcomes := make([]outcome, len(all))
	next := make(chan int)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range max(jobs, 1) {
		wg.Go(func() {
			for i := range next {
				o := r.try(ctx, all[i])
				outcomes[i] = o
				mu.Lock()
				done(all[i], o)
				mu.Unlock()
			}
		})
	}
	for i := range all {
		if ctx.Err() == nil {
			next <- i
		}
	}
	close(next)
	wg.Wait()
	return outcomes
}

// try builds and tests one mutation.
func (r *runner) try(ctx context.Context, m mutation) outcome {
	start := time.Now()
	by, err := r.killer(ctx, m)
	o := outcome{took: time.Since(start)}
	switch {
	case err != nil:
		o.verdict, o.reason = failed, err.Error()
	case by == "":
		o.verdict, o.reason = survived, "go test "+m.test
	default:
		o.verdict, o.reason = killed, by
	}
	return o
}

// killer returns the test that fails because of m, or "" if all pass.
func (r *runner) killer(ctx context.Context, m mutation) (string, error) {
	path := filepath.Join(r.dir, filepath.FromSlash(m.file))
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	mutated, err := m.apply(string(source))
	if err != nil {
		return "", err
	}
	if err := r.passesPlain(ctx, m.test); err != nil {
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
	return r.test(ctx, m.test, "-overlay="+overlay, "-count=1")
}

// passesPlain returns an error unless the tests pass on the code as it is, for
// then their failure says nothing. Each is tried once.
func (r *runner) passesPlain(ctx context.Context, test string) error {
	r.mu.Lock()
	f := r.plain[test]
	if f == nil {
		f = sync.OnceValue(func() error {
			by, err := r.test(ctx, test)
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

// event is a line of go test -json.
type event struct {
	Action string
	Test   string
	Output string
}

// test runs go test and returns what failed, or "".
func (r *runner) test(ctx context.Context, test string, flags ...string) (string, error) {
	words := strings.Fields(test)
	env := os.Environ()
	for len(words) > 0 && strings.Contains(words[0], "=") && words[0][0] != '-' {
		env, words = append(env, words[0]), words[1:]
	}
	args := append([]string{"test", "-json", "-vet=off", "-failfast", "-timeout=" + r.timeout.String()}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, words...)...)
	cmd.Dir, cmd.Env = r.dir, env
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	by, ran, why := read(out)
	switch {
	case why == "" && by == "" && err != nil:
		why = "go test: " + err.Error() + ": " + firstLine(errors.String())
	case why == "" && ran == 0 && err == nil:
		why = "no test runs"
	}
	if why != "" {
		return "", fmt.Errorf("go test %s: %s", test, why)
	}
	return by, nil
}

// read goes through what go test -json wrote: which test failed, how many did
// not skip, and why none could run.
func read(out []byte) (by string, ran int, why string) {
	running := map[string]bool{}
	how, building := "", ""
	for line := range bytes.Lines(out) {
		var e event
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		test, _, _ := strings.Cut(e.Test, "/")
		switch e.Action {
		case "run":
			running[test] = true
		case "pass", "skip":
			if e.Action == "pass" && e.Test != "" {
				ran++
			}
			if e.Test == test {
				delete(running, test)
			}
		case "build-output":
			if building == "" && !strings.HasPrefix(e.Output, "#") {
				building = firstLine(e.Output)
			}
		case "build-fail":
			why = "it does not build: " + building
		case "output":
			switch {
			case strings.HasPrefix(e.Output, "panic: test timed out"):
				how = ", which timed out"
			case how == "" && (strings.HasPrefix(e.Output, "panic: ") || strings.HasPrefix(e.Output, "fatal error: ")):
				how = ", which crashed"
			}
		case "fail":
			if by == "" {
				by = test
			}
			if by == "" { // The process died: of what was running.
				by = strings.Join(slices.Sorted(maps.Keys(running)), " or ")
			}
			if by == "" {
				by = "the test program"
			}
		}
	}
	if by != "" {
		by += how
	}
	return by, ran, why
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}
