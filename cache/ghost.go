// Ghosts: hashes of evicted keys, by which the policy sees that a key returns.
//
//	note           | old 4 bits | ghost 12 bits | ... five in all, the newest last |
//	ghost          | hash 11 bits | main |
//
// The ghost queue is spread over the buckets of the index: the note of each bucket has up to five
// ghosts. A ghost is 11 bits of the hash of a key, and a bit that is set if the item was in the
// main queue (a main ghost).
//
// If items are large, the buckets have room for more ghosts than ghostPercent of the items. Then a
// hand passes over the buckets. It marks the ghosts of a bucket as old, and forgets those that
// were old already.

package cache

import "math/bits"

// ghostOf returns the ghost of a key with hash h. It is never 0.
func ghostOf(h uint64, main bool) uint64 {
	ghost := max(h>>(64-ghostBits)&^mainGhost, 1<<1)
	if main {
		ghost |= mainGhost
	}
	return ghost
}

// addGhost adds the ghost of a key with hash h. The oldest ghost of the bucket makes room.
func (s *shard) addGhost(h uint64, main bool) {
	b := s.index.First(tagOf(h))
	old := min(b.Note>>ghostShift, maxGhosts-1)
	b.Note = old<<ghostShift | (b.Note<<ghostBits|ghostOf(h, main))&allGhosts
}

// ageGhosts moves the hand after an eviction, unless the buckets have room for ghostPercent of the
// items at most. A ghost is forgotten when the hand passes it for the second time, which is after
// one and a half rounds on average. So a round takes two thirds of that number of evictions.
func (s *shard) ageGhosts() {
	p, n := &s.policy, s.index.Buckets()
	most := s.index.Len() * ghostPercent / 100
	if int(n)*maxGhosts <= most {
		return
	}
	round := max(most*2/3, 1) // evictions
	for p.progress += int(n); p.progress >= round; p.progress -= round {
		if p.hand++; p.hand >= n {
			p.hand = 0
		}
		b := s.index.Bucket(p.hand)
		b.Note = aged(b.Note)
	}
}

// aged returns a note without its old ghosts, and with all others marked as old.
func aged(note uint64) uint64 {
	old := int(note >> ghostShift)
	ghosts := note & allGhosts
	n := (bits.Len64(ghosts) + ghostBits - 1) / ghostBits // a ghost is not 0
	left := max(n-old, 0)
	return uint64(left)<<ghostShift | ghosts&(1<<(left*ghostBits)-1)
}

// recall counts the return of a key with hash h by its latest ghost. It reports whether the key has
// a ghost that is no main ghost.
func (s *shard) recall(h uint64) bool {
	for g := s.index.First(tagOf(h)).Note & allGhosts; g != 0; g >>= ghostBits {
		switch g & (1<<ghostBits - 1) {
		case ghostOf(h, true):
			s.policy.main.returned++
			return false
		case ghostOf(h, false):
			s.policy.small.returned++
			return true
		}
	}
	return false
}
