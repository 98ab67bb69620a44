// Replay: the calls of malloc that a program has made.
//
// native/record.c records them and describes the files. The first replay finds the most memory that
// the program takes: every page of a block is written. Further replays find the time of a call. All
// calls are made by one goroutine.

package alloc

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/lab/bench/measure"
	"github.com/freehold-go/freehold/lab/process"
)

// traceDir is the folder of the traces.
var traceDir = cmp.Or(os.Getenv("FREEHOLD_TRACES"), "../traces")

func BenchmarkReplay(b *testing.B) {
	paths, _ := filepath.Glob(filepath.Join(traceDir, "*.gz"))
	for _, path := range paths {
		measure.Run(b, "trace="+strings.TrimSuffix(filepath.Base(path), ".gz"), peer, func(b *testing.B) {
			t, err := readTrace(path)
			if err != nil {
				b.Skip(err)
			}
			free(must(alloc(16))) // the allocator's own start-up is not a block's cost
			debug.FreeOSMemory()  // the collector does not return memory during the replay
			before, err := process.ResetPeak()
			if err != nil {
				b.Skip(err)
			}
			t.replay(len(t.calls))
			peak, err := process.Peak()
			if err != nil {
				b.Skip(err)
			}
			measure.Loops(b, 1, 1, func(int) measure.Loop { return t.replay })
			b.ReportMetric(float64(peak-before)/float64(t.mostLive), "peak/live")
		})
	}
}

const (
	endCall = iota
	mallocCall
	callocCall
	reallocCall
	freeCall
)

type call struct {
	block     uint32
	size, old uint32 // bytes, before realloc and after
	kind      uint8
}

// A trace is a program's calls. The last ones free the blocks that the program left.
type trace struct {
	calls    []call
	blocks   []block // by number
	mostLive int     // bytes
	next     int     // position in calls
}

// readTrace reads a file. It touches the whole table of blocks.
func readTrace(path string) (*trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	in := traceReader{Reader: bufio.NewReader(z)}
	t := &trace{}
	for c := in.call(); c.kind != endCall; c = in.call() {
		t.calls = append(t.calls, c)
		t.mostLive = max(t.mostLive, in.live)
	}
	if in.err != nil {
		return nil, fmt.Errorf("%s: %w", path, in.err)
	}
	for i, size := range in.sizes {
		if size > 0 {
			t.calls = append(t.calls, call{block: uint32(i), kind: freeCall})
		}
	}
	t.blocks = make([]block, len(in.sizes))
	clear(t.blocks)
	return t, nil
}

// A traceReader reads the calls of a file. sizes has the bytes of each block, or 0 if it is not
// live. unused is a stack of the blocks that are not.
type traceReader struct {
	*bufio.Reader
	sizes, unused []uint32
	last          uint32 // the block of the last call
	live          int    // bytes
	err           error
}

func (r *traceReader) number() uint32 {
	x, err := binary.ReadUvarint(r)
	r.err = cmp.Or(r.err, err)
	return uint32(x)
}

// block reads the number of a live block.
func (r *traceReader) block() uint32 {
	d, err := binary.ReadVarint(r)
	if r.last += uint32(d); err == nil && (int(r.last) >= len(r.sizes) || r.sizes[r.last] == 0) {
		err = fmt.Errorf("block %d is not live", r.last)
	}
	if r.err = cmp.Or(r.err, err); r.err != nil {
		return 0
	}
	return r.last
}

// call reads the next call. After an error it returns the end.
func (r *traceReader) call() (c call) {
	kind, err := r.ReadByte()
	r.err = cmp.Or(r.err, err)
	c.kind = kind
	switch kind {
	case endCall:
	case mallocCall, callocCall:
		c.size = max(1, r.number())
		if n := len(r.unused); n > 0 {
			r.last, r.unused = r.unused[n-1], r.unused[:n-1]
		} else {
			r.last, r.sizes = uint32(len(r.sizes)), append(r.sizes, 0)
		}
		c.block = r.last
	case reallocCall:
		c.block, c.size = r.block(), r.number()
	case freeCall:
		c.block = r.block()
		r.unused = append(r.unused, c.block)
	default:
		r.err = cmp.Or(r.err, fmt.Errorf("call %d", kind))
	}
	if r.err != nil {
		return call{}
	}
	if kind != endCall {
		c.old, r.sizes[c.block] = r.sizes[c.block], c.size
		r.live += int(c.size) - int(c.old)
	}
	return c
}

// replay makes the next n calls. After the last call the first one follows.
func (t *trace) replay(n int) (sum uint64) {
	var none block
	for range n {
		c := &t.calls[t.next]
		if t.next++; t.next == len(t.calls) {
			t.next = 0
		}
		at := &t.blocks[c.block]
		switch c.kind {
		case mallocCall:
			*at = must(alloc(int(c.size)))
		case callocCall:
			*at = must(zeroed(int(c.size)))
		case reallocCall:
			*at = must(realloc(*at, int(c.old), int(c.size)))
		case freeCall:
			free(*at)
			*at = none
			continue
		}
		if b := bytes(*at, int(c.size)); c.size > c.old {
			for i := int(c.old); i < len(b); i += 4096 {
				b[i] = 1
			}
			b[len(b)-1] = 1
		}
		sum += uint64(c.size)
	}
	return sum
}

// A damaged file is an error, and its calls are those that were written.
func TestTrace(t *testing.T) {
	for _, tt := range []struct {
		in    string
		calls int // with those at the end
		live  int // at most
		ok    bool
	}{
		{"\x00", 0, 0, true},
		{"\x01\x05\x02\xac\x02\x04\x01\x01\x00\x00", 6, 305, true}, // the second and then the third block are 0
		{"\x01\x05\x03\x00\x0a\x00", 3, 10, true},
		{"\x01\x05\x04\x00\x04\x00\x00", 0, 0, false}, // freed twice
		{"\x04\x00\x00", 0, 0, false},
		{"\x01\x05", 0, 0, false}, // has no end
		{"\x05\x00", 0, 0, false},
	} {
		path := filepath.Join(t.TempDir(), "a.gz")
		f := must(os.Create(path))
		z := gzip.NewWriter(f)
		_, _ = io.WriteString(z, tt.in)
		_ = z.Close()
		_ = f.Close()
		got, err := readTrace(path)
		if (err == nil) != tt.ok || err == nil && (len(got.calls) != tt.calls || got.mostLive != tt.live) {
			t.Errorf("%q: %+v, %v", tt.in, got, err)
		}
	}
}
