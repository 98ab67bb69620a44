// Caches: writers of snapshots that are killed or run out of disk space.

//go:build linux

package faults

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/cache"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

const (
	leastEntries = 200 // more than 16 KiB
	mostEntries  = 3000
)

// newCache returns a cache with room for the largest generation.
func newCache(parent freehold.Allocator) *cache.Cache {
	return cache.New(parent, &cache.Options{MaxBytes: 8 << 20})
}

// A generation is the complete contents of a cache at one time. Generation 0 is empty.
type generation int

func (g generation) entries() int {
	if g == 0 {
		return 0
	}
	return leastEntries + Random(int(g)).IntN(mostEntries-leastEntries)
}

func (g generation) value(i int) []byte {
	return Noise()[(int(g)*7919+i*131)%(len(Noise())/2):][:i%500]
}

// write replaces c's contents with the generation.
func (g generation) write(c *cache.Cache) error {
	c.Clear()
	for i := range g.entries() {
		if err := c.Set(fmt.Append(nil, i), g.value(i)); err != nil {
			return err
		}
	}
	return nil
}

// is reports whether c has exactly the generation.
func (g generation) is(c *cache.Cache) bool {
	for i := range g.entries() {
		if v, ok := c.Get(nil, fmt.Append(nil, i)); !ok || string(v) != string(g.value(i)) {
			return false
		}
	}
	return c.Len() == g.entries()
}

// snapshots is the process to be killed. It writes a byte to its parent after each snapshot.
func snapshots() error {
	path := os.Getenv(pathOf)
	var g generation
	if _, err := fmt.Sscan(os.Getenv(roundOf), &g); err != nil {
		return err
	}
	c := newCache(freehold.Pages())
	for ; ; g++ {
		if err := g.write(c); err != nil {
			return err
		}
		if err := c.SnapshotFile(path); err != nil {
			return err
		}
		if _, err := os.Stdout.Write([]byte{'.'}); err != nil {
			return err
		}
	}
}

// After a kill, the file has the last snapshot that the process reported or the next one,
// complete. A file that is cut short is an error and adds no entry.
func TestKillsOfSnapshots(t *testing.T) {
	dir := t.TempDir()
	path, torn := filepath.Join(dir, "file"), filepath.Join(dir, "torn")
	start := time.Now()
	c := newCache(alloctest.New(t))
	defer c.Close()
	var last generation
	next := 0
	for n := range Kills() {
		r := Random(-1 - n)
		cmd, told := child(t, "snapshots", path, int(last+1))
		last += generation(killed(t, r, cmd, told))
		c.Clear()
		err := c.RestoreFile(path)
		switch {
		case last.is(c) && (err == nil || last == 0 && errors.Is(err, fs.ErrNotExist)):
		case (last + 1).is(c) && err == nil:
			last++
			next++
		default:
			t.Fatalf("kill %d, -seed %d: the file has %d entries, which are neither snapshot %d nor the next one: %v", n, Seed(), c.Len(), last, err)
		}
		if last > 0 {
			whole := freehold.Must(os.ReadFile(path))
			filetest.Must(t, os.WriteFile(torn, whole[:r.IntN(len(whole))], 0o600))
			if err := c.RestoreFile(torn); !errors.Is(err, cache.ErrTruncated) && !errors.Is(err, cache.ErrForeign) || c.Len() != 0 {
				t.Fatalf("kill %d, -seed %d: a torn file: %v, and %d entries", n, Seed(), err, c.Len())
			}
		}
		Show("kills", n+1, Kills())
	}
	t.Logf("%d kills after %d snapshots, %.1f s: each left one whole, %d times one that was not told", Kills(), last, time.Since(start).Seconds(), next)
}

// fillSnapshot runs out of space for a snapshot. The snapshot before it stays.
func fillSnapshot(t *testing.T, room *Room, r *rand.Rand) int {
	path := filepath.Join(room.Dir, "file")
	defer os.Remove(path)
	c := newCache(alloctest.New(t))
	defer c.Close()
	again := newCache(alloctest.New(t))
	defer again.Close()
	wants := func(g generation) {
		t.Helper()
		again.Clear()
		if err := again.RestoreFile(path); !(g == 0 && errors.Is(err, fs.ErrNotExist)) && err != nil || !g.is(again) {
			t.Errorf("%d entries, want generation %d: %v", again.Len(), g, err)
		}
	}
	const fills = 3
	first := generation(1 + r.IntN(1000))
	for old, g := generation(0), first; g < first+fills; old, g = g, g+1 {
		filetest.Must(t, g.write(c))
		limit := 4096
		if info, err := os.Stat(path); err == nil && !room.Each() {
			limit += (int(info.Size()) + 4095) &^ 4095
		}
		room.Limit(t, limit)
		room.WantFull(t, c.SnapshotFile(path))
		room.Limit(t, 8<<20)
		wants(old)
		filetest.Must(t, c.SnapshotFile(path))
		wants(g)
	}
	return fills
}
