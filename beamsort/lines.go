// Lines of a range of a file: the lines that begin in it.

package beamsort

import (
	"bufio"
	"context"
	"errors"
	"io"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
)

// A byteRange is the bytes of a file from Begin up to End, End excluded.
type byteRange struct {
	File       string
	Begin, End int64
	Samples    int // the number of lines to sample
}

// A lineReader reads the lines that begin in a byteRange.
type lineReader struct {
	*bufio.Reader
	source io.Closer
	seeks  bool  // the file can be opened at an offset without reading it up to there
	at     int64 // offset of the next line
	end    int64
	line   []byte
}

func open(ctx context.Context, file string) (io.ReadCloser, error) {
	fs, err := filesystem.New(ctx, file)
	if err != nil {
		return nil, err
	}
	defer fs.Close()
	return fs.OpenRead(ctx, file)
}

// openLines opens a file at the first line that begins at begin or later.
func openLines(ctx context.Context, file string, begin, end int64) (_ *lineReader, err error) {
	f, err := open(ctx, file)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	// The byte before begin tells whether a line begins at begin.
	at := max(begin-1, 0)
	s, seeks := f.(io.Seeker)
	if seeks {
		_, err = s.Seek(at, io.SeekStart)
	} else {
		_, err = io.CopyN(io.Discard, f, at)
	}
	if err != nil {
		return nil, err
	}
	r := &lineReader{Reader: bufio.NewReaderSize(f, 64<<10), source: f, seeks: seeks, at: at, end: end}
	if begin > 0 {
		if _, err := r.next(); err != nil && err != io.EOF {
			return nil, err
		}
	}
	return r, nil
}

// next returns the next line, newline included. It adds a newline to a last line without one.
// The line is valid until the next call. io.EOF means that no further line begins in the range.
func (r *lineReader) next() ([]byte, error) {
	if r.at >= r.end {
		return nil, io.EOF
	}
	r.line = r.line[:0]
	for {
		part, err := r.ReadSlice('\n')
		r.at += int64(len(part))
		if err == nil && len(r.line) == 0 {
			return part, nil
		}
		r.line = append(r.line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == io.EOF && len(r.line) > 0:
			return append(r.line, '\n'), nil
		default:
			return r.line, err
		}
	}
}

func (r *lineReader) close() error { return r.source.Close() }
