package pointerfree_test

import (
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/freehold-go/freehold/analysis/pointerfree"
)

// The analyzer says of each type what freehold says of it at run time.
func TestWordsAreThoseOfThePanic(t *testing.T) {
	run := exec.Command("go", "run", "./words")
	run.Dir = "../testdata"
	run.Env = append(run.Environ(), "GOWORK=off")
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	pkgs, err := packages.Load(&packages.Config{Mode: packages.LoadAllSyntax, Dir: run.Dir, Env: run.Env}, "./words")
	if err != nil {
		t.Fatal(err)
	}
	graph, err := checker.Analyze([]*analysis.Analyzer{pointerfree.Analyzer}, pkgs, nil)
	if err != nil {
		t.Fatal(err)
	}
	panics := strings.Split(strings.TrimSpace(string(out)), "\n")
	found := graph.Roots[0].Diagnostics
	if len(panics) != len(found) {
		t.Fatalf("%d panics, %d diagnostics", len(panics), len(found))
	}
	for i, d := range found {
		if d.Message != panics[i] {
			t.Errorf("the analyzer says\n\t%s\nand freehold\n\t%s", d.Message, panics[i])
		}
	}
}
