// Words: keys and values as whole words, which readers load while others write.

package hashmap

import (
	"sync/atomic"
	"unsafe"
)

const wordBytes = unsafe.Sizeof(uintptr(0))

// wordsFor returns the size of a T rounded up to whole words.
func wordsFor[T any]() uintptr {
	var v T
	return (unsafe.Sizeof(v) + wordBytes - 1) &^ (wordBytes - 1)
}

// loadCell returns the value whose words are at p. During a write it may be any mixture of words;
// the caller detects that by the version.
func loadCell[T any](p unsafe.Pointer) (v T) {
	switch n := unsafe.Sizeof(v); {
	case n == 0:
	case n <= wordBytes:
		w := atomic.LoadUintptr((*uintptr)(p))
		v = *(*T)(unsafe.Pointer(&w))
	default:
		loadWords(unsafe.Slice((*byte)(unsafe.Pointer(&v)), n), p)
	}
	return v
}

// loadWords copies the words at p to b.
func loadWords(b []byte, p unsafe.Pointer) {
	for len(b) > 0 {
		w := atomic.LoadUintptr((*uintptr)(p))
		n := copy(b, (*[wordBytes]byte)(unsafe.Pointer(&w))[:])
		b, p = b[n:], unsafe.Add(p, wordBytes)
	}
}

// storeCell sets the words at p to *v.
func storeCell[T any](p unsafe.Pointer, v *T) {
	switch n := unsafe.Sizeof(*v); {
	case n == 0:
	case n <= wordBytes:
		var w uintptr
		*(*T)(unsafe.Pointer(&w)) = *v
		storeWord((*uintptr)(p), w)
	default:
		storeWords(p, unsafe.Slice((*byte)(unsafe.Pointer(v)), n))
	}
}

// storeWords sets the words at p to b.
func storeWords(p unsafe.Pointer, b []byte) {
	for len(b) > 0 {
		var w uintptr
		n := copy((*[wordBytes]byte)(unsafe.Pointer(&w))[:], b)
		storeWord((*uintptr)(p), w)
		b, p = b[n:], unsafe.Add(p, wordBytes)
	}
}

// copySlot copies the entry with a key at from, in a locked table. It copies references in one
// piece on 32 bits too: a late reader of an earlier table at this address may read the text behind a
// reference before R5 fails.
func (m *sharedTables) copySlot(to, from unsafe.Pointer) {
	to, from = m.valueIn(to), m.valueIn(from)
	if m.direct {
		copyWords(to, from, m.keyStep)
		return
	}
	for at := uintptr(0); at < m.keyStep; at += refBytes {
		store64((*uint64)(unsafe.Add(to, at)), *(*uint64)(unsafe.Add(from, at)))
	}
}

// copyWords copies size bytes of whole words of a locked table to p.
func copyWords(p, from unsafe.Pointer, size uintptr) {
	for at := uintptr(0); at < size; at += wordBytes {
		storeWord((*uintptr)(unsafe.Add(p, at)), *(*uintptr)(unsafe.Add(from, at)))
	}
}
