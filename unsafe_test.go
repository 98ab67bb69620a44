package freehold_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// CONTRIBUTING.md says which packages of the core import unsafe, beside those in internal.
func TestPackagesWithUnsafe(t *testing.T) {
	text, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?s)- unsafe is allowed in .*?\.`).FindString(string(text))
	var want []string
	for _, name := range regexp.MustCompile("`([\\w/]+)`").FindAllStringSubmatch(line, -1) {
		want = append(want, name[1])
	}
	got := []string{"internal"}
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, err := os.Stat(filepath.Join(path, "go.mod"))
			if path != "." && (err == nil || path == "internal" || d.Name() == "testdata" || d.Name()[0] == '.') {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range file.Imports {
			if i.Path.Value == `"unsafe"` {
				got = append(got, strings.Replace(filepath.ToSlash(filepath.Dir(path)), ".", "freehold", 1))
			}
		}
		return nil
	})
	slices.Sort(want)
	slices.Sort(got)
	if got = slices.Compact(got); err != nil || !slices.Equal(got, want) {
		t.Errorf("packages that import unsafe are %q, and CONTRIBUTING.md says %q: %v", got, want, err)
	}
}
