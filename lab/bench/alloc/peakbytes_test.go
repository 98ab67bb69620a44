// Where the bytes of a peak are: a table of the traces of Replay, when nearly the most is committed.
//
//	go test ./bench/alloc -run TestPeakBytes -v

//go:build !peer

package alloc

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/small"
)

// peakParts names the parts of the committed bytes. A part of the free bytes in spans and of the
// metadata was never written, and is not resident.
var peakParts = []string{
	"live", "rounding", "free in magazines and depots", "free in spans", "kept runs", "free runs", "metadata",
}

// partsOf returns the bytes of the parts, given the bytes that the program asked for.
func partsOf(s freehold.Stats, live int) (parts []int) {
	cached, free, spans := 0, 0, 0
	for _, c := range s.Classes {
		cached += c.Cached * c.BlockSize
		free += c.Free * c.BlockSize
		run := int(small.SpanPages(small.ClassOf(c.BlockSize, 1))) * pages.PageBytes
		free += c.Spans * (run - run/c.BlockSize*c.BlockSize) // the waste at the ends of spans
		spans += c.Spans * run
	}
	return []int{
		live, s.LiveBytes - live, cached, free, s.Active - spans - s.LargeBytes, s.Committed - s.Metadata - s.Active, s.Metadata,
	}
}

func TestPeakBytes(t *testing.T) {
	paths, _ := filepath.Glob(filepath.Join(traceDir, "*.gz"))
	rows := append([]string{"MiB"}, peakParts...)
	rows = append(rows, "committed", "live at most")
	add := func(row, bytes int) { rows[row] += fmt.Sprintf("\t%.2f", float64(bytes)/(1<<20)) }
	for _, path := range paths {
		tr := must(readTrace(path))
		heap = freehold.NewHeap(nil)
		most := 0
		var parts []int
		for rest := len(tr.calls); rest > 0; {
			n := min(rest, len(tr.calls)/1000+1)
			tr.replay(n)
			rest -= n
			s := heap.Stats()
			if s.Committed <= most+most/32 { // later creeping hides the cause of a peak
				continue
			}
			most, parts = s.Committed, partsOf(s, tr.live())
			sum := 0
			for i, n := range parts {
				if sum += n; n < 0 {
					t.Errorf("%s: %s has %d bytes", path, peakParts[i], n)
				}
			}
			if sum != most {
				t.Errorf("%s: the parts have %d bytes of %d", path, sum, most)
			}
		}
		heap.Close()
		rows[0] += "\t" + strings.TrimSuffix(filepath.Base(path), ".gz")
		for i, n := range append(parts, most, tr.mostLive) {
			add(1+i, n)
		}
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range rows {
		fmt.Fprintln(w, row+"\t")
	}
	w.Flush()
	t.Log("\n" + table.String())
}

// live returns the bytes of the live blocks.
func (t *trace) live() (bytes int) {
	for _, b := range t.blocks {
		bytes += len(b)
	}
	return bytes
}
