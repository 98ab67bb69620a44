// The tests of fastcache, and a program that replaces it.

package fastcache

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/freehold-go/freehold/internal/test/suite"
)

// inBucket matches the prints of a bucket.
var inBucket = regexp.MustCompile(`; bucket\[0\]=%#v|, &c\.buckets\[0\]`)

func TestFastcachesTests(t *testing.T) {
	m := suite.Copy(t, "github.com/VictoriaMetrics/fastcache")
	m.ReplaceCode(t, "cache.go", "stats.go", "file.go")
	os.Remove(filepath.Join(m.Dir, "fastcache_gen_test.go")) // generations of chunks
	m.Write(t, "internals.go", "package fastcache\n\nconst bucketsCount = 512\n")
	m.Write(t, "file_test.go", inBucket.ReplaceAllString(m.Read(t, "file_test.go"), ""))
	m.Test(t, 12, "-short", ".")
}

// The program in the folder example gets the replace line of the package's documentation.
func TestReplace(t *testing.T) {
	if out := suite.RunExample(t); out != "value of key 7\nfastcache: 1000 entries" {
		t.Error(out)
	}
}
