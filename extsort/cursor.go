// Cursor: sorted records, one at a time.
//
// Records come from a run in memory (entryReader), from a part of a file
// (fileReader), or from an input (stream).

package extsort

import (
	"io"

	"github.com/freehold-go/freehold/internal/keysort"
)

// A sequence is sorted records.
type sequence interface {
	// next returns the next record's bytes to compare, and its stored form. Those of
	// an input are valid until the next call, those of a file until one that fills the
	// window. At the end the error is io.EOF.
	next() (key, stored []byte, err error)
}

// A cursor is at a record of a sequence.
type cursor struct {
	word   uint64 // of key from skip on
	key    []byte
	stored []byte
	ended  bool
	order  int  // among cursors with equal keys
	leaf   int  // in a tree
	repeat bool // the key is the previous one; false if that is gone
	skip   int  // bytes that all keys share

	l       *layout
	ofRun   bool     // not of a stream
	records sequence // one of those that follow, or a stream
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

// open begins the part [from, to) of r: entries of a run in memory, or offsets of
// one in a file, which is read through window.
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

// An entryReader is records in memory.
type entryReader struct {
	l       *layout
	text    []byte
	entries []keysort.Entry
	read    *meter
	done    int // bytes that read does not have yet
}

func (r *entryReader) next() (key, stored []byte, err error) {
	if len(r.entries) == 0 || r.done >= progressBytes {
		r.read.add(int64(r.done))
		r.done = 0
	}
	if len(r.entries) == 0 {
		return nil, nil, io.EOF
	}
	e := &r.entries[0]
	r.entries = r.entries[1:]
	stored = r.l.stored(r.text, int(e.At), int(e.N))
	r.done += len(stored)
	return r.text[e.At:][:e.N], stored, nil
}
