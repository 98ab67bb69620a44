package z_test

import (
	"encoding/binary"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	upstream "github.com/dgraph-io/ristretto/v2/z"
	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/adapters/ristretto/z"
	"github.com/freehold-go/freehold/buffer"
	"github.com/freehold-go/freehold/internal/test/suite"
)

// openTree opens a persistent tree, which must have what model has.
func openTree(t *testing.T, path string, model map[uint64]uint64) *z.Tree {
	t.Helper()
	tree, err := z.NewTreePersistent(path)
	if err != nil {
		t.Fatal(err)
	}
	got := map[uint64]uint64{}
	tree.IterateKV(func(k, v uint64) uint64 {
		got[k] = v
		return 0
	})
	if !maps.Equal(got, model) {
		t.Fatalf("%d entries, want %d, or they are others", len(got), len(model))
	}
	return tree
}

// Whatever changes a tree, its file has it at any time: after Close, and if the process is killed.
// The file grows with the entries.
func TestTreeFile(t *testing.T) {
	path, model := filepath.Join(t.TempDir(), "tree"), map[uint64]uint64{}
	tree := openTree(t, path, model)
	random := rand.New(rand.NewPCG(1, 2))
	killing := false
	kill := func() { // opens what the disk has if the process is killed now
		if killing { // a rewrite of that tree
			return
		}
		killing = true
		defer func() { killing = false }()
		killed := path + ".killed"
		if err := os.WriteFile(killed, freehold.Must(os.ReadFile(path)), 0o600); err != nil {
			t.Fatal(err)
		}
		openTree(t, killed, model).Close()
	}
	most, rewrites := 0, 0
	defer z.OnRewrite(func() { rewrites++; kill() })()
	for i := range uint64(60_000) {
		k := 1 + random.Uint64N(1+i/20)
		tree.Set(k, i+1)
		model[k] = i + 1
		switch most = max(most, len(model)); i % 5000 {
		case 1000:
			tree.DeleteBelow(i / 2)
			maps.DeleteFunc(model, func(_, v uint64) bool { return v < i/2 })
			kill()
		case 2000:
			tree.IterateKV(func(k, v uint64) uint64 {
				if k%3 == 0 {
					model[k] = v + 1
					return v + 1
				}
				return 0
			})
			kill()
		case 3000:
			if i > 20_000 && i < 30_000 {
				tree.Reset()
				clear(model)
				kill()
			}
		case 4500:
			if err := tree.Close(); err != nil {
				t.Fatal(err)
			}
			const slack = 16 * 4096
			if size := freehold.Must(os.Stat(path)).Size(); size > int64(4096+5*16*most+2*slack+100) {
				t.Errorf("%d bytes for %d entries", size, len(model))
			}
			tree = openTree(t, path, model)
		}
	}
	if rewrites < 4 {
		t.Errorf("%d rewrites", rewrites)
	}
	if _, err := z.NewTreePersistent(path); err == nil {
		t.Error("opened twice")
	}
	if err := errors.Join(tree.Close(), tree.Close(), (*z.Tree)(nil).Close()); err != nil {
		t.Error(err)
	}
}

// Each kind of change has the file rewritten before it grows without end.
func TestTreeFileIsBounded(t *testing.T) {
	for name, change := range map[string]func(tree *z.Tree, i uint64){
		"Set":         func(tree *z.Tree, i uint64) { tree.Set(1, i+1) },
		"DeleteBelow": func(tree *z.Tree, _ uint64) { tree.DeleteBelow(1) },
		"IterateKV":   func(tree *z.Tree, _ uint64) { tree.IterateKV(func(_, v uint64) uint64 { return v + 1 }) },
	} {
		path := filepath.Join(t.TempDir(), "tree")
		tree := openTree(t, path, map[uint64]uint64{})
		tree.Set(1, 1)
		for i := range uint64(30_000) {
			change(tree, i)
		}
		if size := freehold.Must(os.Stat(path)).Size(); size > 4096+2*(128<<10) {
			t.Errorf("%s: the file has %d bytes for one entry", name, size)
		}
		want := map[uint64]uint64{1: tree.Get(1)}
		if err := tree.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		openTree(t, path, want).Close()
	}
}

// A file is rewritten when it has more than 4096 records and twice the entries, counted anew after
// a Reset, and at Close when more than 4096 and an eighth of the entries were not written in
// order.
func TestTreeFileIsRewrittenInTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tree")
	tree := openTree(t, path, map[uint64]uint64{})
	rewrites := 0
	defer z.OnRewrite(func() { rewrites++ })()
	set := func(n int) {
		for i := range n {
			tree.Set(1+uint64(i%1000), uint64(i+1))
		}
	}
	for _, state := range []string{"new", "after a Reset"} {
		rewrites = 0
		const most = 2*1000 + 4096
		if set(most); rewrites != 0 {
			t.Errorf("%s: rewritten within %d records", state, most)
		}
		if set(1); rewrites != 1 {
			t.Errorf("%s: not rewritten beyond %d records", state, most)
		}
		tree.Reset()
	}
	for _, tt := range []struct{ sets, rewrites int }{{4000, 0}, {5500, 1}} {
		tree.Reset()
		if set(tt.sets); tree.Close() != nil || rewrites != 1+tt.rewrites {
			t.Errorf("%d rewrites by Close after %d changes, want %d", rewrites-1, tt.sets, tt.rewrites)
		}
		tree = freehold.Must(z.NewTreePersistent(path))
	}
	tree.Close()
}

// try calls f and returns the error that it panics with.
func try(f func()) (err error) {
	defer func() { err, _ = recover().(error) }()
	f()
	return nil
}

// A Set that finds no memory is a panic, and neither the tree nor its file has the entry.
func TestTreeWithoutMemory(t *testing.T) {
	path, model := filepath.Join(t.TempDir(), "tree"), map[uint64]uint64{}
	tree := openTree(t, path, model)
	var taken [][]byte
	for size := 512 << 20; size >= 4096; size /= 2 {
		for try(func() { taken = append(taken, z.Calloc(size, "")) }) == nil {
		}
	}
	k := uint64(1)
	err := error(nil)
	for ; err == nil && k < 1<<20; k++ {
		if err = try(func() { tree.Set(k, k) }); err == nil {
			model[k] = k
		}
	}
	for _, b := range taken {
		z.Free(b)
	}
	if k--; !errors.Is(err, freehold.ErrOutOfMemory) || tree.Get(k) != 0 {
		t.Errorf("key %d: %d, %v", k, tree.Get(k), err)
	}
	tree.Set(k+1, 1)
	model[k+1] = 1
	tree.Close()
	openTree(t, path, model).Close()
}

// What counts in a file begins at the last Reset: before it are records that a process has written
// when it was killed.
func TestTreeFileRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tree")
	const reset, magic = 1<<64 - 1, 0x3165657274687266
	for _, tt := range []struct {
		words []uint64
		want  map[uint64]uint64 // nil if it is no tree
	}{
		{[]uint64{reset, magic}, map[uint64]uint64{}},
		{[]uint64{reset, magic, 7, 1, 9, 1, 8, 1, reset, magic, 5, 4, 6, 3}, map[uint64]uint64{5: 4, 6: 3}},
		{[]uint64{reset, magic, 5, 4, 6, 3, 5, 2, 0, 3, 1, 1}, map[uint64]uint64{1: 1, 6: 3}},
		{[]uint64{reset, magic, 5, 4, 0, 0, 6, 3}, map[uint64]uint64{5: 4, 6: 3}}, // a page that was not written when the system lost power
		{[]uint64{reset, magic, 5}, nil},
		{[]uint64{5, 4, reset, magic}, nil},
		{[]uint64{reset, 1, reset, magic}, nil},
	} {
		os.Remove(path)
		b := freehold.Must(z.NewBufferPersistent(path, 0))
		for _, w := range tt.words {
			b.Write(binary.LittleEndian.AppendUint64(nil, w))
		}
		b.Release()
		if tt.want != nil {
			openTree(t, path, tt.want).Close()
		} else if _, err := z.NewTreePersistent(path); !errors.Is(err, buffer.ErrCorrupt) {
			t.Errorf("%d: %v", tt.words, err)
		}
	}
	os.WriteFile(path, []byte("no tree"), 0o600)
	if _, err := z.NewTreePersistent(path); !errors.Is(err, buffer.ErrForeign) {
		t.Error(err)
	}
}

// A persistent tree of four million random keys is opened, one is set, and it is closed.
func BenchmarkTreeFile(b *testing.B) {
	type tree interface {
		Set(k, v uint64)
		Close() error
	}
	for _, row := range []struct {
		name string
		open func(path string) (tree, error)
	}{
		{"ristretto", func(path string) (tree, error) { return upstream.NewTreePersistent(path) }},
		{"freehold", func(path string) (tree, error) { return z.NewTreePersistent(path) }},
	} {
		b.Run("z="+row.name, func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "tree")
			t, start := freehold.Must(row.open(path)), time.Now()
			for i := range uint64(4 << 20) {
				t.Set(1+i*0x9E3779B97F4A7C15>>1, i+1)
			}
			set := time.Since(start)
			freehold.Must(0, t.Close())
			end := suite.Footprint(b)
			for b.Loop() {
				t := freehold.Must(row.open(path))
				t.Set(1, 1)
				freehold.Must(0, t.Close())
			}
			end()
			b.ReportMetric(float64(freehold.Must(os.Stat(path)).Size())/(1<<20), "file-MiB")
			b.ReportMetric(float64(set.Nanoseconds())/(4<<20), "ns/Set")
		})
	}
}
