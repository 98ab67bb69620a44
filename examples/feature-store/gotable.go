// The same table on the Go heap, for comparison, as one writes it without freehold.

package main

import "sync"

type goTable struct {
	mu       sync.RWMutex
	features map[string]*Features
}

func newGoTable() *goTable { return &goTable{features: map[string]*Features{}} }

// Get is Table.Get.
func (t *goTable) Get(key []byte) (Features, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	f, ok := t.features[string(key)]
	if !ok {
		return Features{}, false
	}
	return *f, true
}

// Put is Table.Put.
func (t *goTable) Put(key []byte, f Features) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old, ok := t.features[string(key)]; ok {
		*old = f
	} else {
		t.features[string(key)] = &f
	}
	return nil
}

// Len is Table.Len.
func (t *goTable) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.features)
}
