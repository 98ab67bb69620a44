package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The command says the same by itself and as go vet's tool.
func TestCommand(t *testing.T) {
	tool := filepath.Join(t.TempDir(), "freeholdvet.exe")
	if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, args := range [][]string{
		{tool, "./page"},
		{"go", "vet", "-vettool=" + tool, "./page"},
	} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = "../../testdata"
		cmd.Env = append(os.Environ(), "GOWORK=off")
		out, err := cmd.CombinedOutput()
		if err == nil {
			t.Errorf("%v: exit status 0", args)
		}
		for _, want := range []string{
			"rows.go:17:24: freehold: MakeSlice[row]: field name is a string, which points into the Go heap; use freehold.String",
			"rows.go:35:11: xs is read after freehold.FreeSlice at line 34",
		} {
			if strings.Count(string(out), want) != 1 {
				t.Errorf("%v: no %q in\n%s", args, want, out)
			}
		}
	}
}
