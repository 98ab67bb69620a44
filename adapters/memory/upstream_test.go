// The tests of modernc.org/memory, and programs that replace it.

package memory_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/internal/test/suite"
)

// These test how many regions modernc.org/memory keeps, which a heap has not.
var ofRegions = []string{"TestTrim", "TestTrimClasses", "TestTrimBigPage", "TestFreedPool", "TestSlabBatch", "TestSlabBatchFreedPoolBound"}

// inPage is lines of two tests that look at a page's header.
var inPage = regexp.MustCompile(`(?m)^\tpg? := \(\*page\).*\n.*\n.*\n\t}$`)

// What the tests know of modernc.org/memory besides its interface.
const internals = `package memory

const (
	counters    = true
	maxSlotSize = 1 << 14
	osPageSize  = 4 << 10
	pageSize    = 64 << 10
)
`

func TestMemorysTests(t *testing.T) {
	m := suite.Copy(t, "modernc.org/memory")
	files, err := filepath.Glob(filepath.Join(m.Dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			os.Remove(file)
		}
	}
	here := suite.Module{Dir: "."}
	for _, file := range []string{"allocator.go", "views.go"} {
		m.Write(t, file, here.Read(t, file))
	}
	m.Write(t, "internals.go", internals)
	m.Drop(t, "all_test.go", ofRegions...)
	tests := inPage.ReplaceAllString(m.Read(t, "all_test.go"), "")
	if testing.Short() {
		tests = strings.Replace(tests, "quota = 128 << 20", "quota = 1 << 20", 1)
	}
	m.Write(t, "all_test.go", strings.ReplaceAll(tests, "len(alloc.regs)", "alloc.Allocs"))
	m.Test(t, 17, ".")
}

// user is a program of C's malloc with a limit, which has the replace line of the package's documentation, to this folder.
var user = map[string]string{
	"go.mod": `module example.com/user

go 1.26.0

require (
	github.com/freehold-go/freehold v0.1.0
	modernc.org/libc v1.80.1
	modernc.org/memory v1.12.1
)

replace modernc.org/memory => MODULE

replace github.com/freehold-go/freehold => MODULE/../..
`,
	"limits/limits.go": `package limits

import "modernc.org/memory"

func init() { memory.Options.MaxBytes = 16 << 20 }
`,
	"main.go": `package main

import (
	"fmt"

	_ "example.com/user/limits"
	"github.com/freehold-go/freehold"
	"modernc.org/libc"
)

func main() {
	tls := libc.NewTLS()
	p := libc.Xmalloc(tls, 8<<20)
	for _, st := range freehold.AllStats() {
		if st.LiveBytes >= 8<<20 {
			fmt.Println(st.Name)
		}
	}
	fmt.Println(libc.Xmalloc_usable_size(tls, p), libc.Xmalloc(tls, 32<<20))
	libc.Xfree(tls, p)
}
`,
}

func TestReplace(t *testing.T) {
	m := suite.Module{Dir: t.TempDir()}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range user {
		m.Write(t, file, strings.ReplaceAll(text, "MODULE", here))
	}
	cmd := exec.Command("go", "run", ".")
	cmd.Dir, cmd.Env = m.Dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	out, err := cmd.CombinedOutput()
	if want := "modernc.org/memory\n8388608 0\n"; err != nil || !strings.HasSuffix(string(out), want) {
		t.Errorf("%v: %s", err, out)
	}
}
