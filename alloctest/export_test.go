package alloctest

import (
	"testing"

	"github.com/freehold-go/freehold"
)

// Checks returns the names of TestAllocator's subtests.
func Checks() (names []string) {
	for _, c := range conformance {
		names = append(names, c.name)
	}
	return names
}

// Check runs the subtest of TestAllocator with the given name.
func Check(t testing.TB, name string, a freehold.Allocator) {
	for _, c := range conformance {
		if c.name == name {
			c.check(t, a, Options{MaxSize: 3 << 20, MaxAlign: 4096, Detects: AllMistakes})
			return
		}
	}
	t.Fatalf("no check %q", name)
}
