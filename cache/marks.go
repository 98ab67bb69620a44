// Marks: the keys of a shard that were written since a Restore began, which it must not overwrite.
//
//	hash of the key --> bit, of a power of two of bits
//
// Keys whose hashes have equal low bits share a bit. So a few other keys count as written too.

package cache

import (
	"math/bits"
	"slices"
)

// marks are a bit set of one Restore.
type marks struct {
	cleared bool     // Clear was called: all keys count as written
	bits    []uint64 // a power of two
}

// markShare is the number of bytes of a shard's share of the bound for each bit of marks.
const markShare = 128

const wordBits = 64

func (m *marks) bit(h uint64) (word *uint64, mask uint64) {
	return &m.bits[h/wordBits%uint64(len(m.bits))], 1 << (h % wordBits)
}

// beginRestore returns new marks, which get the keys that are written from now on, until endRestore.
// share is the shard's share of the bound, in bytes.
func (ls *loads) beginRestore(share int) *marks {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	words := max(share/markShare/wordBits, 1)
	m := &marks{bits: make([]uint64, 1<<bits.Len(uint(words-1)))}
	ls.restores = append(ls.restores, m)
	ls.count()
	return m
}

func (ls *loads) endRestore(m *marks) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	i := slices.Index(ls.restores, m)
	ls.restores = slices.Delete(ls.restores, i, i+1)
	ls.count()
}

// mayRestore reports whether a key with hash h was not written since the Restore of m began. The
// caller has the lock of its shard.
func (ls *loads) mayRestore(m *marks, h uint64) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	word, mask := m.bit(h)
	return !m.cleared && *word&mask == 0
}

// wasCleared reports whether Clear was called since the Restore of m began.
func (ls *loads) wasCleared(m *marks) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return m.cleared
}
