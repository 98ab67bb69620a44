package suite

import (
	"strings"
	"testing"
)

// Subtests do not count. The output of failed tests is kept, and so is the output of packages
// that do not build.
func TestTally(t *testing.T) {
	events := `
{"Action":"output","Package":"p","Test":"TestA","Output":"of A\n"}
{"Action":"pass","Package":"p","Test":"TestA/sub"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Test":"TestC","Output":"of C\n"}
{"Action":"fail","Package":"p","Test":"TestC"}
{"Action":"pass","Package":"p"}
{"Action":"build-output","ImportPath":"q","Output":"undefined: x\n"}
{"Action":"build-fail","ImportPath":"q"}`
	passed, skipped, failures := tally([]byte(events))
	if passed != 1 || skipped != 1 || strings.Join(strings.Fields(failures), " ") != "of C undefined: x" {
		t.Errorf("%d passed, %d skipped, failures: %s", passed, skipped, failures)
	}
}
