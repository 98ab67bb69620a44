// Package filetest has what tests of files share.
package filetest

import "testing"

// Must ends the test at the first error.
func Must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}
