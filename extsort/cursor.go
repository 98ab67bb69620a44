// Cursor: the records of a part of a run, one at a time.
//
// A part in a file is read into a window:
//
//	window  | used | data: read, not used | free |
//
// What is left of the data when more is needed moves to in front of a multiple of
// blockAlign, so that the rest of the file can be read in whole blocks.

package extsort

import "fmt"

type cursor struct {
	word   uint64 // of key from skip on
	key    []byte // the bytes to compare
	stored []byte // the whole record
	ended  bool
	order  int // among cursors with equal keys
	leaf   int // in a tree

	l       *layout
	skip    int // bytes that all keys share
	in      *stream
	entries []entry
	text    []byte

	file   *file
	window []byte
	data   []byte
	next   int64 // what to read next, a multiple of blockAlign
	to     int64 // where the part ends
}

// open begins the part [from, to) of r: entries of a run in memory, or offsets of
// one in a file.
func (c *cursor) open(l *layout, r *run, from, to int64, window []byte, skip int) error {
	*c = cursor{l: l, order: c.order, leaf: c.leaf, skip: skip}
	if r.file == nil {
		c.text, c.entries = r.text, r.entries[from:to]
		return nil
	}
	c.file, c.window, c.to = r.file, window, to
	c.next = from &^ (blockAlign - 1)
	if from == to {
		return nil
	}
	if err := c.fill(); err != nil {
		return err
	}
	c.data = c.data[from&(blockAlign-1):]
	return nil
}

// fill reads more of the file, behind what is left.
func (c *cursor) fill() error {
	head := roundUp(len(c.data), blockAlign)
	n := min(int64(len(c.window)-head)&^(blockAlign-1), roundUp(c.to-c.next, blockAlign))
	if n <= 0 {
		return fmt.Errorf("freehold: extsort: no room for a record of %d bytes", len(c.data)) // not with a window of newPlan
	}
	from := head - copy(c.window[head-len(c.data):head], c.data)
	if err := c.file.readAt(c.window[head:head+int(n)], c.next); err != nil {
		return err
	}
	n = min(n, c.to-c.next)
	c.data = c.window[from : head+int(n)]
	c.next += roundUp(n, blockAlign)
	return nil
}

// advance moves to the next record, or sets ended.
func (c *cursor) advance() error {
	if c.file == nil {
		if c.in != nil {
			return c.advanceStream()
		}
		return c.advanceEntry()
	}
	for {
		at, n, size := c.l.first(c.data)
		if size > 0 {
			c.stored = c.data[:size]
			c.key = c.data[at : at+n]
			c.data = c.data[size:]
			c.word = c.l.word(c.key, c.skip)
			return nil
		}
		if c.next >= c.to {
			c.end()
			if len(c.data) != 0 {
				return fmt.Errorf("freehold: extsort: a temporary file has changed")
			}
			return nil
		}
		if err := c.fill(); err != nil {
			return err
		}
	}
}

func (c *cursor) advanceEntry() error {
	if len(c.entries) == 0 {
		c.end()
		return nil
	}
	e := &c.entries[0]
	c.entries = c.entries[1:]
	c.key = c.text[e.at:][:e.n]
	c.word = c.l.word(c.key, c.skip)
	c.stored = c.l.stored(c.text, int(e.at), int(e.n))
	return nil
}

func (c *cursor) end() { c.ended, c.word = true, ^uint64(0) }

func roundUp[T int | int64](n, align T) T { return (n + align - 1) &^ (align - 1) }
