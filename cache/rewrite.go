// Rewriting: an entry that is replaced by one of nearly its size stays where it is.
//
// A rewrite is W1 to W3 of segment.go for one item. The item's slot is 0 while the item is written.
// The item is written only if its segment is unpinned then. A reader that finds no slot searches
// again, since moves is odd.
//
// A rewrite does not move the item in its queue. So it counts as a hit. The version grows by 1.

package cache

// An item may have up to 1/slackShare of its size in slack bytes.
const slackShare = 8

// rewrite writes the entry over the item of old, and reports whether it could.
func (s *shard) rewrite(w *write, old pinned) bool {
	if old.at == nil {
		return false
	}
	n, _ := s.segs.split(old.w.place())
	g, it := s.segs.at(n), old.it
	sh, ok := it.reshaped(w)
	if !ok || s.c.isLarge(it.size()) || !g.takes(it.expires.Load(), w.expires) {
		return false
	}
	s.index.BeginMove()
	word := slot(old.at.Swap(0)) // W1
	s.c.seam.At(writeHidden)
	alone := !s.segs.isPinned(n) // W2
	if alone {
		s.c.seam.At(writeAlone)
		size := it.size()
		g.expiry.remove(it.expires.Load(), size)
		s.advance(it, sh, w.keeps)
		it.writeEntry(w.e, w.expires, &s.c.clock)
		g.expiry.add(w.expires, size)
		word = onHit(word)
	}
	old.at.Store(uint64(word))
	s.c.seam.At(writeShown)
	s.index.EndMove()
	return alone
}

// reshaped returns the shape of the item after a rewrite, less its rewrites, and whether the item
// can be rewritten.
func (it *item) reshaped(w *write) (sh shape, ok bool) {
	sh = w.shape | it.shape&versioned
	slack := it.size() - itemBytes(w.key, w.e, sh)
	ok = sh.flagsBytes() == it.shape.flagsBytes() && it.shape.rewrites() < maxRewrites &&
		slack >= 0 && slack <= min(it.size()/slackShare, maxSlack*unitBytes)
	return sh.withSlack(max(slack, 0)), ok
}

// takes reports whether the histogram can show that an item expires at another second. An item that
// never expired must stay so, and the new second must not be in the last bin.
func (x *expiry) takes(was, expires uint32) bool {
	if was == 0 || expires == 0 {
		return was == expires
	}
	return x.bin(expires) != &x.bins[bins-1]
}
