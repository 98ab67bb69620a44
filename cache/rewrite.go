// Rewriting: a new entry of nearly the old one's size is written over it.
//
// A rewrite is W1 to W3 of segment.go for one item. The item's slot is 0 while the item is written.
// The item is written only if its segment is unpinned then. A reader that finds no slot meanwhile
// searches again, since the index's sequence counter is odd.
//
// A rewrite does not move the item to the end of its queue. So it counts as a hit instead. The
// version grows by 1, except for Mark.

package cache

// An item may have up to 1/slackShare of its size in slack bytes.
const slackShare = 8

// rewrite writes the entry over the item of old, and reports whether it could.
func (s *shard) rewrite(w *write, old pinned) bool {
	if old.at == nil {
		return false
	}
	n, offset := s.segs.split(old.w.place())
	g, it := s.segs.at(n), old.it
	sh, ok := it.reshaped(w)
	if !ok || s.c.isLarge(it.size()) || w.kept != g.isKept() {
		return false
	}
	s.index.BeginMove()
	word := slot(old.at.Swap(0)) // W1
	s.c.seam.At(writeHidden)
	alone := !s.segs.isPinned(n) // W2
	if alone {
		s.c.seam.At(writeAlone)
		s.advance(it, sh, w.keeps)
		it.writeEntry(w, &s.c.clock)
		s.expect(g, offset, w.expires)
		word = onHit(word)
	}
	old.at.Store(uint64(word))
	s.c.seam.At(writeShown)
	s.index.EndMove()
	return alone
}

// reshaped returns the shape of the item after a rewrite, and whether the item can be rewritten.
// The shape has 0 rewrites: advance sets them.
func (it *item) reshaped(w *write) (sh shape, ok bool) {
	sh = w.shape | it.shape&versioned
	slack := it.size() - itemBytes(w.key, w.e, sh)
	ok = sh.flagsBytes() == it.shape.flagsBytes() && it.shape.rewrites() < maxRewrites &&
		slack >= 0 && slack <= min(it.size()/slackShare, maxSlack*unitBytes)
	return sh.withSlack(max(slack, 0)), ok
}
