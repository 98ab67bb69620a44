package alloctest_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// recorder is a testing.TB that records failures instead of failing.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	failures []string
	cleanups []func()
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) { r.Fatalf("%s", fmt.Sprint(args...)) }

func (r *recorder) Skip(args ...any) { runtime.Goexit() }

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.failures) > 0
}

func (r *recorder) Logf(format string, args ...any) {}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

// record runs test with a recorder and returns its failures. A panic of the test counts
// as one.
func record(t *testing.T, test func(t testing.TB)) []string {
	r := &recorder{TB: t}
	var wg sync.WaitGroup
	wg.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				r.Errorf("panic: %v", p)
			}
		}()
		defer func() {
			for i := len(r.cleanups) - 1; i >= 0; i-- {
				r.cleanups[i]()
			}
		}()
		test(r)
	})
	wg.Wait()
	return r.failures
}

// wantFailure checks that there is one failure, and that its message has all the parts.
func wantFailure(t *testing.T, failures []string, parts ...string) {
	t.Helper()
	if len(failures) != 1 {
		t.Fatalf("%d failures, want 1:\n%s", len(failures), strings.Join(failures, "\n"))
	}
	for _, part := range parts {
		if !strings.Contains(failures[0], part) {
			t.Errorf("the failure does not say %q:\n%s", part, failures[0])
		}
	}
}
