// Tree: the least of several cursors, again and again.
//
// A tree of losers (Knuth, The Art of Computer Programming 3, 5.4.1): each inner
// node has the loser of the match between its subtrees, and losers[0] the winner
// of all. After the winner advances only the matches on its path are played again.

package extsort

import "bytes"

type tree struct {
	l       *layout
	cursors []*cursor
	losers  []*cursor
}

// startTree returns a tree of opened cursors, and plays all matches.
func startTree(l *layout, cursors []*cursor) (*tree, error) {
	for i, c := range cursors {
		c.leaf = i
		if err := c.advance(); err != nil {
			return nil, err
		}
	}
	t := &tree{l: l, cursors: cursors, losers: make([]*cursor, len(cursors))}
	if len(cursors) > 0 {
		t.losers[0] = t.play(1)
	}
	return t, nil
}

// play plays the matches below node and returns the winner. Leaf i is node
// len(cursors) + i.
func (t *tree) play(node int) *cursor {
	if node >= len(t.cursors) {
		return t.cursors[node-len(t.cursors)]
	}
	a, b := t.play(2*node), t.play(2*node+1)
	if t.less(b, a) {
		a, b = b, a
	}
	t.losers[node] = b
	return a
}

// winner returns the cursor with the least record, nil when all have ended.
func (t *tree) winner() *cursor {
	if len(t.losers) == 0 || t.losers[0].ended {
		return nil
	}
	return t.losers[0]
}

// advance moves the winner to its next record.
func (t *tree) advance() error {
	c := t.losers[0]
	if err := c.advance(); err != nil {
		return err
	}
	if c.repeat {
		return nil // it has won against the same records
	}
	for node := (len(t.cursors) + c.leaf) / 2; node > 0; node /= 2 {
		if l := t.losers[node]; l.word < c.word || l.word == c.word && t.lessSlow(l, c) {
			t.losers[node], c = c, l
		}
	}
	t.losers[0] = c
	return nil
}

func (t *tree) less(a, b *cursor) bool {
	return a.word < b.word || a.word == b.word && t.lessSlow(a, b)
}

// lessSlow is less for equal words.
func (t *tree) lessSlow(a, b *cursor) bool {
	if a.ended || b.ended {
		return b.ended && !a.ended
	}
	x, y := a.key[a.skip:], b.key[b.skip:]
	c := bytes.Compare(x, y)
	if t.l.descending {
		c = -c
	}
	return c < 0 || c == 0 && a.order < b.order
}

// each calls f for every record in order; with unique, once per key. last is the
// buffer for the previous key, nil if keys stay valid.
func (t *tree) each(last []byte, f func(c *cursor) error) error {
	var previous []byte
	for first := true; ; first = false {
		c := t.winner()
		if c == nil {
			return nil
		}
		if !t.l.unique || first || string(c.key) != string(previous) {
			if t.l.unique {
				previous = c.key
				if last != nil {
					previous = append(last[:0], c.key...)
				}
			}
			if err := f(c); err != nil {
				return err
			}
		}
		if err := t.advance(); err != nil {
			return err
		}
	}
}
