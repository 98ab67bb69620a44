// Pages: whole pages from the operating system.

package freehold

import "sync"

var pages = sync.OnceValue(func() *Heap {
	return newShared(&HeapOptions{Name: "pages", WholePages: true})
})

// Pages returns the one process-wide heap of whole pages: see
// [HeapOptions].WholePages. It is the allocator to build others on, and for few,
// large, long-lived blocks. Close of it panics.
func Pages() *Heap { return pages() }
