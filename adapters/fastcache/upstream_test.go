// The tests of fastcache, and a program that replaces it.

package fastcache

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/internal/test/suite"
)

// inBucket matches the prints of a bucket.
var inBucket = regexp.MustCompile(`; bucket\[0\]=%#v|, &c\.buckets\[0\]`)

func TestFastcachesTests(t *testing.T) {
	m := suite.Copy(t, "github.com/VictoriaMetrics/fastcache")
	files, err := filepath.Glob(filepath.Join(m.Dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, "_gen_test.go") { // generations of chunks
			os.Remove(file)
		}
	}
	here := suite.Module{Dir: "."}
	for _, file := range []string{"cache.go", "stats.go", "file.go"} {
		m.Write(t, file, here.Read(t, file))
	}
	m.Write(t, "internals.go", "package fastcache\n\nconst bucketsCount = 512\n")
	m.Write(t, "file_test.go", inBucket.ReplaceAllString(m.Read(t, "file_test.go"), ""))
	m.Test(t, 12, "-short", ".")
}

// The program in the folder example gets the replace line of the package's documentation.
func TestReplace(t *testing.T) {
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	m := suite.Module{Dir: t.TempDir()} // outside of the workspace
	if err := os.CopyFS(m.Dir, os.DirFS("example")); err != nil {
		t.Fatal(err)
	}
	m.Edit(t, "go.mod", "=> ..\n", "=> "+here+"\n")
	m.Edit(t, "go.mod", "=> ../../..\n", "=> "+filepath.Dir(filepath.Dir(here))+"\n")
	m.Go(t, "mod", "tidy")
	if out := m.Go(t, "run", "."); out != "value of key 7\nfastcache: 1000 entries" {
		t.Error(out)
	}
}
