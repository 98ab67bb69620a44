package pool_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Go vet reports copies of the types that must not be copied: each line with := in
// testdata/copies.
func TestVetFindsCopies(t *testing.T) {
	gocmd, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go command: ", err)
	}
	const file = "testdata/copies/copies.go"
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	vet := exec.Command(gocmd, "vet", "-copylocks", "./testdata/copies")
	vet.Env = append(os.Environ(), "GOOS=", "GOARCH=", "GOFLAGS=")
	out, _ := vet.CombinedOutput()
	found := strings.Count(string(out), "assignment copies lock value")
	if want := strings.Count(string(source), ":="); found != want || want == 0 {
		t.Errorf("%d copies of %d were found:\n%s", found, want, out)
	}
}
