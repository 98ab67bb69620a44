// Rewriting: a new entry that is no larger than the old one is written over it.
//
// A rewrite is W1 to W3 of segment.go for one item. The item's slot is 0 while the item is written.
// The item is written only if its segment is unpinned then. A reader that finds no slot meanwhile
// searches again, since the index's sequence counter is odd.
//
// A rewrite does not move the item to the end of its queue. So it counts as a hit instead. The
// version grows by 1, except for Mark.
//
// The bytes of the old entry that the new one does not need are slack. A copy of the item has none.

package cache

// Slack of up to 1/slackShare of an item counts as live: to compact so little would copy much. The
// rest of the slack counts as garbage.
const slackShare = 16

// rewrite writes the entry over the item of old, and reports whether it could.
func (s *shard) rewrite(w *write, old pinned) bool {
	if old.at == nil {
		return false
	}
	n, offset := s.segs.split(old.w.place())
	g, it := s.segs.at(n), old.it
	size := it.size()
	sh, slack, ok := it.reshaped(w, size)
	if !ok || s.c.isLarge(size) || w.kept != g.isKept() {
		return false
	}
	s.index.BeginMove()
	word := slot(old.at.Swap(0)) // W1
	s.c.seam.At(writeHidden)
	alone := !s.segs.isPinned(n) // W2
	if alone {
		s.c.seam.At(writeAlone)
		before := it.slackBytes()
		s.advance(it, sh, w.keeps)
		it.writeEntry(w, &s.c.clock)
		if sh.slackUnits() == longSlack {
			*it.longSlack() = uint32(slack)
		}
		if slack != before {
			s.countLive(g, liveBytes(size, slack)-liveBytes(size, before))
			s.wakeIfWasteful()
		}
		s.expect(g, offset, w.expires)
		word = onHit(word)
	}
	old.at.Store(uint64(word))
	s.c.seam.At(writeShown)
	s.index.EndMove()
	return alone
}

// reshaped returns the shape and the slack of an item of the given size after a rewrite, and whether
// the item can be rewritten. The shape has 0 rewrites: advance sets them.
func (it *item) reshaped(w *write, size int) (sh shape, slack int, ok bool) {
	sh = w.shape | it.shape&versioned
	slack = size - itemBytes(w.key, w.e, sh)
	ok = sh.flagsBytes() == it.shape.flagsBytes() && it.shape.rewrites() < maxRewrites && slack >= 0
	return sh.withSlack(max(slack, 0)), slack, ok
}
