// Pages: whole pages from the operating system.

package freehold

import "sync"

var wholePages = sync.OnceValue(func() *Heap {
	return newShared(&HeapOptions{Name: "pages", WholePages: true})
})

// Pages returns the process-wide heap of whole pages: see [HeapOptions].WholePages.
// Use it as the parent of other allocators, and for few, large, long-lived blocks.
// Its Close panics.
func Pages() *Heap { return wholePages() }
