package panics

import (
	"errors"
	"testing"
)

// failures counts the calls of Errorf.
type failures struct {
	testing.TB
	n int
}

func (f *failures) Helper()               {}
func (f *failures) Errorf(string, ...any) { f.n++ }

func TestWant(t *testing.T) {
	for _, tt := range []struct {
		panics any
		want   string
		fails  bool
	}{
		{"freehold: a", "freehold: a", false},
		{"freehold: a", "freehold: ", true},
		{"freehold: a", "hold: a", true},
		{"freehold: a", "freehold: ...", false},
		{"a b\nc d", "...b...d", false},
		{"a b c d", "...d...b", true},
		{"a b c d", "...b", true},
		{"a+", "a+", false},
		{nil, "", false},
		{nil, "a", true},
		{"a", "", true},
		{errors.New("a"), "a", true},
		{errors.New("a"), "*errors.errorString: a", false},
	} {
		f := &failures{TB: t}
		Want(f, tt.want, func() {
			if tt.panics != nil {
				panic(tt.panics)
			}
		})
		if (f.n == 1) != tt.fails {
			t.Errorf("panic %v, want %q: %d failures", tt.panics, tt.want, f.n)
		}
	}
}
