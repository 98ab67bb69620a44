// Package filetest has helpers for tests of files.
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
