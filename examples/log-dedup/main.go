// Log-dedup drops each line of its input if it has printed an equal one within a time, in bounded
// memory. Lines are equal if they differ in digits alone.
//
//	tail -f app.log | go run ./examples/log-dedup -within 10m
package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cache"
)

func main() {
	within := flag.Duration("within", 10*time.Minute, "print a line again after this `time`")
	mib := flag.Int("mib", 64, "memory for the lines that were seen, in MiB")
	flag.Parse()
	if *within <= 0 || *mib < 1 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "log-dedup: -within and -mib must be more than 0, and lines are read from standard input")
		os.Exit(2)
	}
	d := NewDedup(freehold.Pages(), *mib<<20, *within)
	defer d.Close()
	if err := d.Copy(os.Stdout, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "log-dedup:", err)
		os.Exit(1)
	}
	st := d.seen.Stats()
	fmt.Fprintf(os.Stderr, "log-dedup: %d lines, %d repeated, %d forgotten for want of memory\n", d.lines, d.repeated, st.Evicted)
}

// A Dedup tells lines that it has seen from new ones. If its memory is full, it forgets lines, first
// those that came once. They count as new when they come again.
type Dedup struct {
	seen            *cache.Cache
	key             []byte
	lines, repeated int
}

// NewDedup returns a Dedup that remembers lines for a time, in at most maxBytes of memory. Close
// returns the memory.
func NewDedup(memory freehold.Allocator, maxBytes int, within time.Duration) *Dedup {
	return &Dedup{seen: cache.New(memory, &cache.Options{MaxBytes: maxBytes, TTL: within, Name: "lines"})}
}

func (d *Dedup) Close() { d.seen.Close() }

// maxKey is how many bytes of lines are compared. A key of a cache has at most 65,535.
const maxKey = 4 << 10

// IsNew reports whether a line is to be printed: it was true for no equal line within the time, which
// the cache rounds up to a second.
func (d *Dedup) IsNew(line []byte) bool {
	d.lines++
	d.key = d.key[:0]
	for _, c := range line {
		if '0' <= c && c <= '9' {
			c = '0'
		}
		if n := len(d.key); c != '0' || n == 0 || d.key[n-1] != '0' { // a number of any length is one 0
			d.key = append(d.key, c)
		}
	}
	d.key = d.key[:min(len(d.key), maxKey)]
	added, err := d.seen.Add(d.key, cache.Entry{})
	if err != nil || added {
		return true
	}
	d.seen.View(d.key, func(cache.Entry) {}) // a read, so that a line that repeats is evicted last; Add is none
	d.repeated++
	return false
}

// Copy copies the new lines of r to w. It flushes w before it waits for input. Of a line of more
// than 1 MiB it copies the first MiB.
func (d *Dedup) Copy(w io.Writer, r io.Reader) error {
	in, out := bufio.NewReaderSize(r, 1<<20), bufio.NewWriter(w)
	for {
		line, err := in.ReadSlice('\n')
		isNew := len(line) > 0 && d.IsNew(line)
		if isNew {
			out.Write(line)
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			if _, err = in.ReadSlice('\n'); err == nil && isNew {
				out.WriteByte('\n')
			}
		}
		next, _ := in.Peek(in.Buffered())
		if err != nil || bytes.IndexByte(next, '\n') < 0 {
			if failed := out.Flush(); failed != nil {
				return failed
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
