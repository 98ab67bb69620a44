// Files: a folder with the capacity of a cache and a snapshot of its entries.

package fastcache

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The files of a saved cache.
const (
	capacityFile = "capacity" // in bytes, as decimal digits
	entriesFile  = "entries"  // a snapshot

	foreignFile = "metadata.bin" // of a cache that github.com/VictoriaMetrics/fastcache saved
)

// mostTrusted is the largest capacity that LoadFromFile believes. A cache of 1 TiB takes 13 MiB
// before its first entry.
const mostTrusted = 1 << 40

// SaveToFile writes the entries into a folder, which replaces path once it is complete. It makes the
// folders above. The cache may be used meanwhile. The Load functions read the folder.
func (c *Cache) SaveToFile(path string) error {
	path = filepath.Clean(path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("fastcache: saving a cache: %w", err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), "fastcache.tmp.")
	if err != nil {
		return fmt.Errorf("fastcache: saving a cache: %w", err)
	}
	err = errors.Join(
		os.WriteFile(filepath.Join(dir, capacityFile), []byte(strconv.Itoa(c.entries.Stats().MaxBytes)), 0o644),
		c.entries.SnapshotFile(filepath.Join(dir, entriesFile)),
	)
	if err == nil {
		err = os.RemoveAll(path)
	}
	if err == nil {
		err = os.Rename(dir, path)
	}
	if err != nil {
		return fmt.Errorf("fastcache: saving a cache at %s: %w", path, errors.Join(err, os.RemoveAll(dir)))
	}
	return nil
}

// SaveToFileConcurrent is SaveToFile. The number of goroutines has no effect, as one is enough to
// write faster than most disks.
func (c *Cache) SaveToFileConcurrent(path string, goroutines int) error { return c.SaveToFile(path) }

// LoadFromFile returns a cache with the capacity and the entries that were saved at path. The error
// matches fs.ErrNotExist if nothing was saved there, or an error of the cache's Restore.
// LoadFromFile fails for a capacity above 1 TiB, which a damaged file may have:
// [LoadFromFileMaxBytes] loads such a cache.
func LoadFromFile(path string) (*Cache, error) { return load(path, 0) }

// LoadFromFileMaxBytes is LoadFromFile, and fails if New(maxBytes) has another capacity.
func LoadFromFileMaxBytes(path string, maxBytes int) (*Cache, error) { return load(path, maxBytes) }

// LoadFromFileOrNew is LoadFromFileMaxBytes. If that fails, it returns an empty cache of maxBytes,
// and no reason. A folder that github.com/VictoriaMetrics/fastcache saved fails too.
func LoadFromFileOrNew(path string, maxBytes int) *Cache {
	if c, err := load(path, maxBytes); err == nil {
		return c
	}
	return New(maxBytes)
}

func load(path string, maxBytes int) (*Cache, error) {
	text, err := os.ReadFile(filepath.Join(path, capacityFile))
	if err != nil {
		if _, e := os.Stat(filepath.Join(path, foreignFile)); e == nil {
			err = fmt.Errorf("github.com/VictoriaMetrics/fastcache saved it, whose files cannot be read here: %w", err)
		}
		return nil, fmt.Errorf("fastcache: loading a cache: %w", err)
	}
	size, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || size <= 0 || size != capacity(size) {
		return nil, fmt.Errorf("fastcache: %s has %.20q, which is no capacity", filepath.Join(path, capacityFile), text)
	}
	if maxBytes == 0 && int64(size) > mostTrusted {
		return nil, fmt.Errorf("fastcache: the cache at %s has a capacity of %d bytes, more than LoadFromFile makes: use LoadFromFileMaxBytes", path, size)
	}
	if maxBytes != 0 && size != capacity(maxBytes) {
		return nil, fmt.Errorf("fastcache: the cache at %s has a capacity of %d bytes, want %d", path, size, capacity(maxBytes))
	}
	c := newCache(size)
	if err := c.entries.RestoreFile(filepath.Join(path, entriesFile)); err != nil {
		c.entries.Close()
		return nil, fmt.Errorf("fastcache: loading a cache: %w", err)
	}
	c.beginFigures()
	return c, nil
}
