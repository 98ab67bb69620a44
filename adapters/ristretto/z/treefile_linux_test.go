package z_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/adapters/ristretto/z"
)

// A Set beyond the space on disk is a panic, also one after which the file cannot be rewritten, and tree and file are as before.
func TestTreeFileOnAFullDisk(t *testing.T) {
	for name, keys := range map[string]uint64{"new": 1 << 40, "again": 3000} {
		t.Run(name, func(t *testing.T) {
			path, model := filepath.Join(t.TempDir(), "tree"), map[uint64]uint64{}
			tree := openTree(t, path, model)
			var limit syscall.Rlimit
			if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 190_000, Max: limit.Max}); err != nil {
				t.Fatal(err)
			}
			defer syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
			for i := uint64(1); ; i++ {
				k := 1 + i%keys
				if err := try(func() { tree.Set(k, i) }); err != nil {
					if !errors.Is(err, syscall.EFBIG) {
						t.Error(err)
					}
					break
				}
				model[k] = i
			}
			copied := maps.Clone(model)
			tree.IterateKV(func(k, v uint64) uint64 {
				if copied[k] != v {
					t.Errorf("key %d: %d, want %d", k, v, copied[k])
				}
				delete(copied, k)
				return 0
			})
			if len(copied) > 0 {
				t.Errorf("%d keys are not there", len(copied))
			}
			if err := tree.Close(); err != nil {
				t.Error(err)
			}
			openTree(t, path, model).Close()
		})
	}
}

// A file that was cut is an error.
func TestTreeFileThatWasCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tree")
	tree := freehold.Must(z.NewTreePersistent(path))
	tree.Set(1, 1)
	if err := errors.Join(os.Truncate(path, 0), tree.Close()); err == nil {
		t.Error("Close says nothing of it")
	}
}
