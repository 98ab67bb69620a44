// Table: features by string keys, off-heap.

package main

import (
	"sync"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/hashmap"
)

// Features is the value of a key.
type Features [8]float32

// Table keeps features by key. It is safe for concurrent use.
type Table struct {
	mu       sync.RWMutex
	features *hashmap.Map[string, Features]
}

// NewTable returns an empty table. It allocates from memory. Close returns all of it.
func NewTable(memory freehold.Allocator) *Table {
	return &Table{features: hashmap.New[string, Features](memory, &hashmap.Options{Name: "features"})}
}

// Get returns the features of key and reports whether there are any.
func (t *Table) Get(key []byte) (Features, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return hashmap.GetBytes(t.features, key)
}

// Put sets the features of key. The table copies both. An error matches freehold.ErrOutOfMemory
// and changes nothing.
func (t *Table) Put(key []byte, f Features) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return hashmap.PutBytes(t.features, key, f)
}

// Len returns the number of keys.
func (t *Table) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.features.Len()
}

// Close frees the table. It must not be in use.
func (t *Table) Close() { t.features.Close() }
