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
	"github.com/freehold-go/freehold/internal/vm"
)

// A Set beyond the space on disk is a panic, also one after which the file cannot be rewritten, and
// tree and file are as before.
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

// A rewrite and a Reset wait for the disk, for the data and for the length. If the disk fails, the
// call returns the error, and the file has the tree's entries.
func TestTreeFileWaitsForTheDisk(t *testing.T) {
	type model = map[uint64]uint64
	for name, tt := range map[string]struct {
		waits  int
		change func(tree *z.Tree, model model)
	}{
		"Reset": {2, func(tree *z.Tree, model model) { clear(model); tree.Reset() }},
		"rewrite": {2, func(tree *z.Tree, model model) {
			rewritten := false
			defer z.OnRewrite(func() { rewritten = true })()
			for i := uint64(1); !rewritten; i++ {
				tree.Set(5, i)
				model[5] = i
			}
		}},
		"Close": {5, func(tree *z.Tree, _ model) { freehold.Must(0, tree.Close()) }}, // of which it makes three without a rewrite
	} {
		for call := range tt.waits + 1 {
			path, model := filepath.Join(t.TempDir(), "tree"), model{}
			tree := openTree(t, path, model)
			for i := range uint64(5500) { // so many that Close rewrites them
				tree.Set(1+i%1000, i+1)
				model[1+i%1000] = i + 1
			}
			n := 0
			restore := vm.SetFault(func(op vm.Op) error {
				if op != vm.OpSyncFile {
					return nil
				}
				if n++; n == call {
					return syscall.EIO
				}
				return nil
			})
			err := try(func() { tt.change(tree, model) })
			restore()
			if call == 0 && n != tt.waits || call > 0 && !errors.Is(err, syscall.EIO) {
				t.Errorf("%s waits %d times for the disk, want %d; the one that fails is number %d: %v", name, n, tt.waits, call, err)
			}
			if name != "Close" { // the tree goes on
				tree.Set(7, 1)
				model[7] = 1
			}
			tree.Close()
			openTree(t, path, model).Close()
		}
	}
}

// If the disk has no room for the entries that a rewrite appends, the file keeps the tree's
// entries.
func TestTreeFileWithoutRoomForARewrite(t *testing.T) {
	path, model := filepath.Join(t.TempDir(), "tree"), map[uint64]uint64{}
	tree := openTree(t, path, model)
	const header, page = 4096, 4096
	records := 1 // the first is a Reset
	end := z.OnRewrite(func() {
		if err := os.Truncate(path, header+int64(records*16+page-1)/page*page); err != nil {
			t.Error(err)
		}
	})
	err := error(nil)
	for i := uint64(0); err == nil; i++ {
		k := 1 + i%1000
		if err = try(func() { tree.Set(k, i+1) }); err == nil {
			model[k] = i + 1
			records++
		}
	}
	end()
	if n := records; n < 6000 || n > 7000 {
		t.Errorf("%d records: %v", n, err)
	}
	_ = tree.Close()
	openTree(t, path, model).Close()
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
