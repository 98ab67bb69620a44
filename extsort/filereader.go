// File reader: the records of a part of a file, through a window of memory.
//
//	window  | used | data: read, not used | free |
//
// What is left of the data when more is needed moves to in front of a multiple of
// blockAlign, so that the rest of the file can be read in whole blocks.

package extsort

import (
	"fmt"
	"io"
)

type fileReader struct {
	l      *layout
	file   *file
	window []byte
	data   []byte
	filled bool  // by the last next: what it returned before is gone
	at     int64 // what to read next, a multiple of blockAlign
	to     int64 // where the part ends

	from int64  // where it begins
	read *meter // may be nil

	once bool  // nobody reads the part again: its space is freed
	kept int64 // what has been freed ends here
	step int64 // bytes to free at a time
}

// maxFreeBytes is how much of a file is freed at a time, at most: all runs that are
// merged together have that much more space.
const maxFreeBytes = 1 << 20

// open begins the part [from, to) of a file.
func (r *fileReader) open(l *layout, f *file, from, to int64, window []byte) error {
	*r = fileReader{l: l, file: f, window: window, at: from &^ (blockAlign - 1), from: from, to: to, read: r.read, once: r.once}
	r.kept, r.step = r.at, min((to-from)/8, maxFreeBytes)
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

// fill reads more of the file, behind what is left.
func (r *fileReader) fill() error {
	head := roundUp(len(r.data), blockAlign)
	n := min(int64(len(r.window)-head)&^(blockAlign-1), roundUp(r.to-r.at, blockAlign))
	if n <= 0 {
		return fmt.Errorf("freehold: extsort: no room for a record of %d bytes", len(r.data)) // not with a window of plan.buffers
	}
	from := head - copy(r.window[head-len(r.data):head], r.data)
	if err := r.file.readAt(r.window[head:head+int(n)], r.at); err != nil {
		return err
	}
	n = min(n, r.to-r.at)
	r.read.add(r.at + n - max(r.at, r.from))
	r.data = r.window[from : head+int(n)]
	r.at += roundUp(n, blockAlign)
	if r.once && (r.at-r.kept >= r.step || r.at >= r.to) {
		freeSpace(r.file.f, r.kept, r.at)
		r.kept = r.at
	}
	return nil
}

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

// rest calls f with all that is left, in pieces.
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

func roundUp[T int | int64](n, align T) T { return (n + align - 1) &^ (align - 1) }
