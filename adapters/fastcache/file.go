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

// SaveToFile writes the entries into a folder at path while the cache is in use, and replaces what
// was there once all is written. It makes the folders above. The Load functions read it.
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
func LoadFromFile(path string) (*Cache, error) { return load(path, 0) }

// LoadFromFileMaxBytes is LoadFromFile. It fails if the cache that was saved had another capacity
// than New(maxBytes) has.
func LoadFromFileMaxBytes(path string, maxBytes int) (*Cache, error) { return load(path, maxBytes) }

// LoadFromFileOrNew is LoadFromFileMaxBytes. If that fails, it returns an empty cache of maxBytes. It
// does not say why: a folder that github.com/VictoriaMetrics/fastcache saved fails too.
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
