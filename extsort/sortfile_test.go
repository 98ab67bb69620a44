package extsort_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/extsort"
)

func TestSortFile(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	text := large()
	must(t, os.WriteFile(path, []byte(text), 0o640))
	target := path
	if os.Symlink("file", link) == nil {
		target = link
	}
	o := smallest(t)
	must(t, extsort.SortFile(context.Background(), target, o, path))
	got := freehold.Must(os.ReadFile(path))
	same(t, string(got), joinLines(sortedBy(splitLines(text), o)))
	if info, err := os.Lstat(path); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o640 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
	for name, sources := range map[string][]string{filepath.Join(dir, "new"): {path, path}, path: {path, filepath.Join(dir, "missing")}} {
		err := extsort.SortFile(context.Background(), name, o, sources...)
		if (err == nil) != (name != path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if unchanged, _ := os.ReadFile(path); string(unchanged) != string(got) {
		t.Error("a sort that failed changed its output")
	}
	if err := extsort.SortFile(context.Background(), dir, o, path); err == nil {
		t.Error("a directory is no output")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left %v behind", left)
	}
}

// A result that cannot get its name is an error of SortFile, and leaves nothing else behind.
func TestSortFileThatCannotReplace(t *testing.T) {
	dir := t.TempDir()
	src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
	if err := os.WriteFile(src, []byte("b\na\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := &extsort.Options{Progress: func(extsort.Progress) { _ = os.Mkdir(dst, 0o700) }}
	if err := extsort.SortFile(context.Background(), dst, o, src); err == nil {
		t.Error("a directory was replaced")
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 2 {
		t.Errorf("%v are left; %v", all, err)
	}
}
