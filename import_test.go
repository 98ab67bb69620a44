package freehold_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A program that imports every package and uses none takes no addresses, no
// goroutine and no timer.
func TestImportHasNoSideEffects(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	const footprint = `
func main() {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(status)) {
		if size, ok := strings.CutPrefix(line, "VmSize:"); ok {
			fmt.Print(strings.TrimSuffix(strings.TrimSpace(size), " kB"), " ", runtime.NumGoroutine())
		}
	}
}
`
	const imports = "package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n\t\"runtime\"\n\t\"strings\"\n"
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip(err)
	}
	var packages string
	for _, p := range []string{"", "/arena", "/pool", "/cmalloc", "/alloctest", "/epoch", "/buffer", "/extsort", "/track", "/btree", "/budget", "/cache", "/hashmap", "/intern", "/secret", "/vector"} {
		packages += "\t_ \"github.com/freehold-go/freehold" + p + "\"\n"
	}
	footprintOnce := func(source string) (kB, goroutines int) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("go", "run", filepath.Join(dir, "main.go"))
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, errs.String())
		}
		if n, err := fmt.Sscan(string(out), &kB, &goroutines); n != 2 {
			t.Fatalf("%q: %v", out, err)
		}
		return kB, goroutines
	}
	// The least of several: Go's heap now and then takes another 64 MiB of addresses.
	footprintOf := func(source string) (least, goroutines int) {
		least, goroutines = footprintOnce(source)
		for range 4 {
			kB, _ := footprintOnce(source)
			least = min(least, kB)
		}
		return least, goroutines
	}
	empty, _ := footprintOf(imports + ")\n" + footprint)
	all, goroutines := footprintOf(imports + packages + ")\n" + footprint)
	if all > empty+64<<10 || goroutines != 1 {
		t.Errorf("%d kB of addresses and %d goroutines, want at most 64 MiB more than %d and 1", all, goroutines, empty)
	}
}
