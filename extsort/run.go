// Run: sorted records in memory or in a temporary file, how a file's runs are written
// (runWriter), and how runs are read (entryReader, fileReader).

package extsort

import (
	"cmp"
	"fmt"
	"io"

	"github.com/freehold-go/freehold/internal/file/spill"
	"github.com/freehold-go/freehold/internal/keysort"
	"github.com/freehold-go/freehold/internal/vm"
)

// A run is some of the records, in order.
type run struct {
	seq   int   // of the region's fill
	piece int   // of the fill: a fill that stays in memory is sorted in pieces
	bytes int64 // of its records, about

	// In memory.
	text    []byte
	entries []keysort.Entry

	// In a file; nil and 0 in memory.
	file     *spill.File
	from, to int64 // offsets
	marks    *marks
}

// begin and end return the bounds of a run: offsets in its file, or numbers of entries.
func (r *run) begin() int64 { return r.from }

func (r *run) end() int64 {
	if r.file == nil {
		return int64(len(r.entries))
	}
	return r.to
}

// byInput orders runs by the place of their records in the input.
func byInput(a, b *run) int {
	return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.piece, b.piece))
}

// A runWriter writes runs to one file, one after the other.
type runWriter struct {
	l    *layout
	file *spill.File
	w    *writer
	x    *index
	run  *run

	touched uint
}

// begin begins a run.
func (w *runWriter) begin(seq int) {
	from := w.w.size()
	w.run = &run{seq: seq, file: w.file, from: from, marks: w.x.begin(from)}
}

// add appends a stored record.
func (w *runWriter) add(key, stored []byte) error {
	w.x.add(w.w.size(), key)
	return w.w.add(stored)
}

// end ends the run, pads its file to whole blocks, and returns the run.
func (w *runWriter) end() *run {
	w.run.to = w.w.size()
	w.run.bytes = w.run.to - w.run.from
	w.w.pad()
	return w.run
}

// writeEntries writes the records of sorted entries of text as a run.
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

// A fileReader returns the records of a part of a file, which it reads through a window of
// memory:
//
//	window  | returned records | data | free |
//
// Before it reads more, fill moves the data so that it ends at a multiple of blockAlign. The
// next read is then of whole blocks.
type fileReader struct {
	l      *layout
	file   *spill.File
	window []byte
	data   []byte
	filled bool  // the last next called fill: records returned before are overwritten
	at     int64 // offset of the next read, a multiple of blockAlign

	from, to int64  // the part
	read     *meter // may be nil

	once  bool  // the part is not read again, so fill frees its disk space
	freed int64 // the end of the freed space
	step  int64 // bytes to free at a time
}

// maxFreeBytes is the most bytes of a file to free at a time. During a merge each run's file
// takes up to that much more disk space than its unread records.
const maxFreeBytes = 1 << 20

// open begins the part [from, to) of a file.
func (r *fileReader) open(l *layout, f *spill.File, from, to int64, window []byte) error {
	*r = fileReader{l: l, file: f, window: window, at: from &^ (blockAlign - 1), from: from, to: to, read: r.read, once: r.once}
	r.freed, r.step = r.at, min((to-from)/8, maxFreeBytes)
	if from == to {
		r.at = to
		return nil
	}
	err := r.fill()
	if err == nil {
		r.data = r.data[from&(blockAlign-1):]
	}
	return err
}

// fill reads more of the file, behind the data.
func (r *fileReader) fill() error {
	head := vm.RoundUp(len(r.data), blockAlign)
	n := min(int64(len(r.window)-head)&^(blockAlign-1), vm.RoundUp(r.to-r.at, blockAlign))
	if n <= 0 {
		return fmt.Errorf("freehold: extsort: no room for a record of %d bytes", len(r.data)) // unreachable with windows of buffersOf
	}
	from := head - copy(r.window[head-len(r.data):head], r.data)
	if err := r.file.ReadAt(r.window[head:head+int(n)], r.at); err != nil {
		return err
	}
	n = min(n, r.to-r.at)
	r.read.add(r.at + n - max(r.at, r.from))
	r.data = r.window[from : head+int(n)]
	r.at += vm.RoundUp(n, blockAlign)
	if r.once && (r.at-r.freed >= r.step || r.at >= r.to) {
		r.file.Free(r.freed, r.at)
		r.freed = r.at
	}
	return nil
}

// next returns the next record: its bytes to compare and its stored form. At the end of the
// part the error is io.EOF.
func (r *fileReader) next() (key, stored []byte, err error) {
	for r.filled = false; ; r.filled = true {
		if at, n, size := r.l.first(r.data); size > 0 {
			stored = r.data[:size]
			r.data = r.data[size:]
			return stored[at : at+n], stored, nil
		}
		if r.at >= r.to {
			if len(r.data) != 0 {
				return nil, nil, fmt.Errorf("freehold: extsort: a temporary file has changed")
			}
			return nil, nil, io.EOF
		}
		if err := r.fill(); err != nil {
			return nil, nil, err
		}
	}
}

// rest calls f with all unread bytes of the part, in pieces.
func (r *fileReader) rest(f func(b []byte) error) error {
	for {
		if err := f(r.data); err != nil {
			return err
		}
		r.data = nil
		if r.at >= r.to {
			return nil
		}
		if err := r.fill(); err != nil {
			return err
		}
	}
}

// An entryReader returns the records of a run in memory.
type entryReader struct {
	l       *layout
	text    []byte
	entries []keysort.Entry
	read    *meter
	done    int // bytes not yet reported to read
}

// next is as fileReader.next.
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
