// Traces: files of recorded requests.
//
//	keys      key               a line; keys are any text without spaces and commas
//	sizes     key,size          a line, or with spaces
//	timed     time,key,size     a line, or with spaces; more fields are ignored
//	arc       first n 0 number  a line: the keys first to first+n-1, blocks of one size
//	extents   first n 0 number  a line: the key first, of n sectors of 512 bytes
//	words     key               8 bytes, the high byte first
//	words4    key               4 bytes, the high byte first
//	oracle    libCacheSim's oracleGeneral: time 4 B | key 8 B | size 4 B | next 8 B, little-endian
//
// Lines that begin with # or *, and first lines without a number where one belongs, are skipped.

package simulate

import (
	"bufio"
	"cmp"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A trace is the requests of a file, in order.
type trace struct {
	name     string
	requests []request
	sized    bool // the file has sizes
}

// A request reads a key. If the cache does not have it, it sets a value of size bytes.
type request struct {
	key  uint64
	size uint32
}

const sectorBytes = 512

// formats has the fields of each line, by the name of the format.
var formats = map[string]layout{
	"keys":    {fields: 1, first: -1},
	"sizes":   {fields: 2, size: 1, first: -1},
	"timed":   {fields: 3, key: 1, size: 2, first: -1},
	"arc":     {fields: 4, first: 1},
	"extents": {fields: 4, size: 1, unit: sectorBytes, first: -1},
	"words":   {word: 8},
	"words4":  {word: 4},
	"oracle":  {word: 24},
}

// A layout says where a line, or a word, has key and size.
type layout struct {
	fields    int // of a line, at least
	key, size int // fields; no size if it is 0
	unit      int // bytes of the size's unit; 0 is 1
	first     int // the field with the number of keys, or -1
	word      int // bytes of a request in a binary file; 0 is text
}

// formatOf guesses the format by a file's name.
func formatOf(path string) string {
	name := strings.ToLower(filepath.Base(path))
	switch {
	case strings.Contains(name, "oraclegeneral"):
		return "oracle"
	case strings.Contains(name, ".lis"):
		return "arc"
	}
	return "" // by the first line
}

// formatOfLine guesses the format of a text by its first line.
func formatOfLine(fields []string) string {
	switch {
	case len(fields) == 1:
		return "keys"
	case len(fields) == 2:
		return "sizes"
	case len(fields) == 4 && fields[2] == "0":
		return "arc"
	}
	return "timed"
}

// A source is a file of requests. Its path - is stdin.
type source struct {
	path, format string
	stdin        io.Reader
	usual        uint32 // bytes of a value whose size the file does not say
	limit        int    // requests to read; 0 is all
}

// read reads a trace. It calls show with the part of the file that was read.
func (src source) read(ctx context.Context, show func(part float64)) (*trace, error) {
	r := &reader{trace: trace{name: filepath.Base(src.path)}, source: src, seed: maphash.MakeSeed()}
	in, size := src.stdin, int64(0)
	if src.path != "-" {
		f, err := os.Open(src.path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil {
			size = info.Size()
		}
		in = f
	}
	format := cmp.Or(src.format, formatOf(src.path))
	counted := &counter{r: in, ctx: ctx, of: size, show: show}
	text, err := unpacked(bufio.NewReaderSize(counted, 1<<16))
	if err == nil {
		err = r.readAll(text, format)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", src.path, err)
	}
	if len(r.requests) == 0 {
		return nil, fmt.Errorf("%s: no requests", src.path)
	}
	return &r.trace, nil
}

// A counter shows how much of a file was read, and fails when its context is done.
type counter struct {
	r        io.Reader
	ctx      context.Context
	read, of int64
	show     func(part float64)
}

func (c *counter) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.r.Read(p)
	c.read += int64(n)
	if c.of > 0 {
		c.show(float64(c.read) / float64(c.of))
	}
	return n, err
}

// unpacked returns the content of a file that may be packed by gzip or bzip2.
func unpacked(in *bufio.Reader) (*bufio.Reader, error) {
	head, err := in.Peek(4)
	switch {
	case err != nil && err != io.EOF:
		return nil, err
	case strings.HasPrefix(string(head), "\x1f\x8b"):
		z, err := gzip.NewReader(in)
		return bufio.NewReader(z), err
	case strings.HasPrefix(string(head), "BZh"):
		return bufio.NewReader(bzip2.NewReader(in)), nil
	case string(head) == "\x28\xb5\x2f\xfd":
		return nil, fmt.Errorf("packed by zstd: give its output, as in zstd -dc FILE | lab simulate -")
	case string(head) == "\xfd7zX":
		return nil, fmt.Errorf("packed by xz: give its output, as in xz -dc FILE | lab simulate -")
	}
	return in, nil
}

// A reader appends requests to its trace.
type reader struct {
	trace
	source
	seed maphash.Seed
}

func (r *reader) readAll(in *bufio.Reader, format string) error {
	if n := formats[format].word; n > 0 {
		return r.readWords(in, n)
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan() && !r.isFull(); n++ {
		line := lines.Text()
		fields := strings.FieldsFunc(line, func(c rune) bool { return c == ',' || c == ' ' || c == '\t' || c == '\r' })
		if len(fields) == 0 || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "*") {
			continue
		}
		if format == "" {
			format = formatOfLine(fields)
		}
		if err := r.line(formats[format], fields); err != nil && n > 1 {
			return fmt.Errorf("line %d of format %s: %w", n, format, err)
		}
	}
	return lines.Err()
}

func (r *reader) isFull() bool { return r.limit > 0 && len(r.requests) >= r.limit }

// line adds the requests of a line.
func (r *reader) line(l layout, fields []string) error {
	if len(fields) < l.fields {
		return fmt.Errorf("%d fields, want %d", len(fields), l.fields)
	}
	number := func(i int) (n uint64, err error) {
		n, err = strconv.ParseUint(fields[i], 10, 32)
		if err != nil {
			err = fmt.Errorf("field %d, %q, is no number below 2^32", i+1, fields[i])
		}
		return n, err
	}
	key := r.key(fields[l.key])
	if l.size > 0 {
		size, err := number(l.size)
		if err != nil {
			return err
		}
		r.add(key, size*uint64(max(l.unit, 1)), true)
		return nil
	}
	n := uint64(1)
	if l.first > 0 {
		var err error
		if n, err = number(l.first); err != nil {
			return err
		}
	}
	for i := range n {
		r.add(key+i, uint64(r.usual), false)
	}
	return nil
}

// key returns a number for the text of a key: the number that it is, or its hash.
func (r *reader) key(text string) uint64 {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return n
	}
	return maphash.String(r.seed, text)
}

func (r *reader) readWords(in *bufio.Reader, bytes int) error {
	word := make([]byte, bytes)
	for !r.isFull() {
		if _, err := io.ReadFull(in, word); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		switch bytes {
		case 4:
			r.add(uint64(binary.BigEndian.Uint32(word)), uint64(r.usual), false)
		case 8:
			r.add(binary.BigEndian.Uint64(word), uint64(r.usual), false)
		default:
			r.add(binary.LittleEndian.Uint64(word[4:]), uint64(binary.LittleEndian.Uint32(word[12:])), true)
		}
	}
	return nil
}

func (r *reader) add(key, size uint64, sized bool) {
	if r.isFull() {
		return
	}
	r.requests = append(r.requests, request{key, uint32(min(size, 1<<30))})
	r.sized = r.sized || sized
}

// footprint returns the bytes of all different keys and their values.
func (t *trace) footprint() (bytes int) {
	seen := map[uint64]bool{}
	for _, q := range t.requests {
		if !seen[q.key] {
			seen[q.key] = true
			bytes += keyBytes + int(q.size)
		}
	}
	return bytes
}
