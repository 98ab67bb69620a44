// Memory: blocks of the parent, and chunked arrays of words, which never move.

package intern

import (
	"sync/atomic"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/chunks"
	"github.com/freehold-go/freehold/internal/container"
)

const (
	blockAlign = 64
	wordBytes  = 4

	firstBits = 6      // a first chunk has 64 words
	maxChunks = 4 * 25 // enough for all indexes of 32 bits
	maxWords  = 1<<32 - 4<<firstBits
)

// memory allocates blocks from the parent and counts their bytes.
type memory struct {
	parent   freehold.Allocator
	reserved atomic.Int64
}

// alloc returns the address of a block, whose contents are undefined.
func (m *memory) alloc(size int) (uintptr, error) {
	b, err := m.parent.Alloc(size, blockAlign)
	if err != nil {
		return 0, container.Refused(err)
	}
	m.reserved.Add(int64(size))
	return addrOf(b), nil
}

// free frees a block of alloc.
func (m *memory) free(addr uintptr, size int) {
	m.parent.Free(bytesAt(addr, size))
	m.reserved.Add(-int64(size))
}

// words is a growing array of words that never move. Readers need no lock for a word that was
// written before they learned its index.
type words struct {
	chunks [maxChunks]uintptr
	used   uint // number of chunks
}

// cap returns the number of words.
func (w *words) cap() uint { return chunks.Start(w.used, firstBits) }

// grow adds a chunk.
func (w *words) grow(m *memory) error {
	addr, err := m.alloc(wordBytes * int(chunks.Len(w.used, firstBits)))
	if err != nil {
		return err
	}
	w.chunks[w.used] = addr
	w.used++
	return nil
}

func (w *words) free(m *memory) {
	for i := range w.used {
		m.free(w.chunks[i], wordBytes*int(chunks.Len(i, firstBits)))
	}
	*w = words{}
}
