package z_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A Close that fails leaves the file as it was: on a full disk, and where somebody has cut the file.
func TestTreeFileThatCannotGrow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tree")
	tree := openTree(t, path, 0)
	tree.Set(1, 1)
	if err := tree.Close(); err != nil {
		t.Fatal(err)
	}
	tree = openTree(t, path, 1)
	for k := range uint64(10_000) {
		tree.Set(k+1, 7)
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 64 << 10, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	err := tree.Close()
	if restored := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); restored != nil || !errors.Is(err, syscall.EFBIG) {
		t.Errorf("a file of 160,000 bytes at a limit of 65,536: %v", errors.Join(err, restored))
	}
	tree = openTree(t, path, 1)
	if err := errors.Join(os.Truncate(path, 0), tree.Close()); err == nil {
		t.Error("Close writes to a file that was cut")
	}
}
