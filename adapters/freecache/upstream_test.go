// The tests of freecache, and a program that replaces it.

package freecache

import (
	"testing"

	"github.com/freehold-go/freehold/internal/test/suite"
)

func TestFreecachesTests(t *testing.T) {
	m := suite.Copy(t, "github.com/coocood/freecache")
	m.ReplaceCode(t, "cache.go", "stats.go", "iterator.go", "timer.go")
	m.Write(t, "internals.go", "package freecache\n\nfunc hashFunc(b []byte) uint64 { return uint64(len(b)) }\n")
	m.Write(t, "ringbuf_test.go", "package freecache\n")
	// freecache counts an overwrite only if it is in place.
	m.Edit(t, "cache_test.go", "OverwriteCount(); count != 0", "OverwriteCount(); count != 2")
	m.Edit(t, "cache_test.go", "OverwriteCount(); count != 3", "OverwriteCount(); count != 6")
	m.Edit(t, "cache_test.go", "OverwriteCount() != 1", "OverwriteCount() != 2")
	m.Test(t, 25, "-short", ".")
}

// The program in the folder example gets the replace line of the package's documentation.
func TestReplace(t *testing.T) {
	if out := suite.RunExample(t); out != "value of key 7\nfreecache: 1000 entries" {
		t.Error(out)
	}
}
