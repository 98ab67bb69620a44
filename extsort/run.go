// Run: sorted records, in memory or in a temporary file.

package extsort

import (
	"cmp"

	"github.com/freehold-go/freehold/internal/keysort"
)

// A run is a part of the records, in order.
type run struct {
	seq   int   // number of the fill its records came from
	piece int   // of that fill
	bytes int64 // of its records, about

	// In memory.
	text    []byte
	entries []keysort.Entry

	// In a file.
	file     *file
	from, to int64 // offsets

	x                  *index
	firstMark, endMark int
}

// bytes returns how many all runs have, about.
func (j *job) bytes() (n int64) {
	for _, r := range j.runs {
		n += r.bytes
	}
	return n
}

func byInput(a, b *run) int {
	return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.piece, b.piece))
}

// A runWriter writes runs to one file, one after the other.
type runWriter struct {
	l    *layout
	file *file
	w    *writer
	x    *index
	run  *run

	touched uint
}

// begin begins a run.
func (w *runWriter) begin(seq int) {
	w.run = &run{seq: seq, file: w.file, from: w.w.size()}
	w.x.begin(w.run)
}

// add appends a stored record.
func (w *runWriter) add(key, stored []byte) error {
	w.x.add(w.w.size(), key)
	return w.w.add(stored)
}

// end ends the run and returns it.
func (w *runWriter) end() *run {
	w.run.to = w.w.size()
	w.run.bytes = w.run.to - w.run.from
	w.w.pad()
	return w.run
}

// writeEntries writes sorted entries of a text as a run.
func (w *runWriter) writeEntries(seq int, text []byte, entries []keysort.Entry) (*run, error) {
	w.begin(seq)
	var last []byte
	for i := range entries {
		if i%keysort.Ahead == 0 {
			w.touched += keysort.Touch(text, entries[i:min(i+keysort.Ahead, len(entries))])
		}
		e := &entries[i]
		at, n := int(e.At), int(e.N)
		key := text[at:][:n]
		if w.l.unique {
			if i > 0 && string(key) == string(last) {
				continue
			}
			last = key
		}
		if err := w.add(key, w.l.stored(text, at, n)); err != nil {
			return nil, err
		}
	}
	return w.end(), nil
}
