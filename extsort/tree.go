// Tree: a k-way merge by a loser tree (Knuth, The Art of Computer Programming 3, 5.4.1).
//
// The leaves are cursors, each at one record of a sorted sequence. An inner node has the loser
// of the match between its subtrees, and losers[0] the winner of all: the cursor with the least
// record. After the winner has advanced, only the matches on its path are played again.

package extsort

import (
	"bytes"
	"io"
)

// A sequence returns sorted records.
type sequence interface {
	// next returns the next record's bytes to compare, and its stored form. They are
	// valid until the next call; in a fileReader, until a call that sets filled. At the
	// end the error is io.EOF.
	next() (key, stored []byte, err error)
}

// A cursor is at one record of a sequence.
type cursor struct {
	word   uint64 // the key's bytes from skip on
	key    []byte
	stored []byte
	ended  bool
	order  int  // breaks ties between equal keys
	leaf   int  // index in the tree
	repeat bool // the key equals the previous one; false if that is no longer in memory
	skip   int  // length of a prefix that all keys share

	l       *layout
	records sequence // &file, &entries or a stream
	ofRun   bool     // records is not a stream
	file    fileReader
	read    *meter
	entries entryReader
}

// advance moves to the next record, or sets ended.
func (c *cursor) advance() (err error) {
	before, word := c.key, c.word
	c.key, c.stored, err = c.records.next()
	c.repeat = false
	switch err {
	case nil:
		c.word = c.l.word(c.key, c.skip)
		c.repeat = c.word == word && c.ofRun && !c.file.filled && string(c.key) == string(before)
	case io.EOF:
		c.ended, c.word, err = true, ^uint64(0), nil
	}
	return err
}

// open makes c read the part [from, to) of r: numbers of entries, or offsets in a file that is
// read through window.
func (c *cursor) open(r *run, from, to int64, window []byte) error {
	c.ofRun = true
	if r.file == nil {
		c.entries = entryReader{l: c.l, text: r.text, entries: r.entries[from:to], read: c.read}
		c.records = &c.entries
		return nil
	}
	c.records = &c.file
	c.file.read = c.read
	return c.file.open(c.l, r.file, from, to, window)
}

type tree struct {
	l       *layout
	cursors []*cursor
	losers  []*cursor
}

// startTree advances all cursors to their first records and returns a tree of them.
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

// winner returns the cursor with the least record, or nil if all have ended.
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
		return nil // the same key wins the same matches again
	}
	for node := (len(t.cursors) + c.leaf) / 2; node > 0; node /= 2 {
		if l := t.losers[node]; l.word < c.word || l.word == c.word && t.lessSlow(l, c) {
			t.losers[node], c = c, l
		}
	}
	t.losers[0] = c
	return nil
}

// less reports whether a comes before b.
func (t *tree) less(a, b *cursor) bool {
	return a.word < b.word || a.word == b.word && t.lessSlow(a, b)
}

// lessSlow is less for records with equal words.
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

// each calls f for every record in order; with unique, for the first one of each key. last is
// memory for a copy of the previous key. It is nil if all keys stay in memory.
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
