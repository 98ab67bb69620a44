// Panics: what tests ask of a call that must panic.

// Package panics tests for panics. Package alloctest depends on packages that use it, so it is
// not a part of that.
package panics

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// Of returns the message that call panics with, "" if it does not panic. A panic with a value
// other than a string begins with that value's type.
func Of(call func()) (message string) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case string:
			message = p
		default:
			message = fmt.Sprintf("%T: %v", p, p)
		}
	}()
	call()
	return ""
}

// Want checks the message that call panics with. In want, "..." matches any text; "" is no
// panic.
func Want(t testing.TB, want string, call func()) {
	t.Helper()
	pattern := strings.ReplaceAll(regexp.QuoteMeta(want), `\.\.\.`, `(?s:.*)`)
	if got := Of(call); !regexp.MustCompile("^" + pattern + "$").MatchString(got) {
		t.Errorf("panic %q, want %q", got, want)
	}
}
