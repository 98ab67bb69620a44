// Stores that readers may see at any moment: see shared_words_plain.go.

//go:build !amd64 || race

package hashmap

import (
	"sync/atomic"
	"unsafe"
)

func storeWord(p *uintptr, w uintptr) { atomic.StoreUintptr(p, w) }
func store64(p *uint64, w uint64)     { atomic.StoreUint64(p, w) }

// storeByte stores a tag or the overflow bits of a group: in a table of a Shared, the whole word.
func (l *layout) storeByte(p *uint8, b uint8) {
	if !l.shared {
		*p = b
		return
	}
	at := uintptr(unsafe.Pointer(p)) & wordMask
	word := (*uint64)(unsafe.Add(unsafe.Pointer(p), -int(at)))
	w := *word
	(*[8]uint8)(unsafe.Pointer(&w))[at] = b
	atomic.StoreUint64(word, w)
}
