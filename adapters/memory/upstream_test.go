// The tests of modernc.org/memory, and programs that replace it.
//
// The tests are in package memory itself: the replace line gives the package another path, and
// go mod tidy would look for a module of its own if a test imported it.

package memory

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/internal/test/suite"
)

// ofRegions are tests that count the regions of modernc.org/memory. A heap has no regions.
var ofRegions = []string{"TestTrim", "TestTrimClasses", "TestTrimBigPage", "TestFreedPool", "TestSlabBatch", "TestSlabBatchFreedPoolBound"}

// inPage matches the lines of two tests that read a page's header.
var inPage = regexp.MustCompile(`(?m)^\tpg? := \(\*page\).*\n.*\n.*\n\t}$`)

// internals declares the unexported names of modernc.org/memory that its tests use.
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
	m.ReplaceCode(t, "allocator.go", "views.go")
	m.Write(t, "internals.go", internals)
	m.Drop(t, "all_test.go", ofRegions...)
	tests := inPage.ReplaceAllString(m.Read(t, "all_test.go"), "")
	if testing.Short() {
		tests = strings.Replace(tests, "quota = 128 << 20", "quota = 1 << 20", 1)
	}
	m.Write(t, "all_test.go", strings.ReplaceAll(tests, "len(alloc.regs)", "alloc.Allocs"))
	m.Test(t, 17, ".")
}

// The program in the folder example gets the replace line of the package's documentation.
func TestReplace(t *testing.T) {
	if out := suite.RunExample(t); !strings.HasSuffix(out, "modernc.org/memory\n8388608 0") {
		t.Error(out)
	}
}

// SQLite, as modernc.org translates it, passes its tests with the replace line. For the excluded
// tests see excluded in adapters/sqlite.
func TestSQLitesTests(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes, most of them to build: make test-long")
	}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	m := suite.Download(t, "modernc.org/sqlite@v1.62.0")
	m.Go(t, "mod", "edit", "-replace=modernc.org/memory="+here)
	m.Test(t, 180, "-short", "-skip", "^TestConcurrentGoroutines$|^TestRegisteredFunctions$/expir", ".")
}
