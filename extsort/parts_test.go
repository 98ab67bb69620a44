package extsort

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/file/spill"
	"github.com/freehold-go/freehold/internal/keysort"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

// written returns a temporary file with text, padded to whole blocks.
func written(t *testing.T, text string) *spill.File {
	temp := freehold.Must(os.CreateTemp(t.TempDir(), ""))
	t.Cleanup(func() { temp.Close() })
	f := spill.New("extsort", temp, "temporary file")
	err := writing(make([]byte, 4*blockAlign), 0, f.WriteAt, func(w *writer) error {
		if err := w.add([]byte(text)); err != nil {
			return err
		}
		w.pad()
		return nil
	})
	filetest.Must(t, err)
	return f
}

// Each read is of whole blocks, whatever is left of the data before.
func TestReadsAreAligned(t *testing.T) {
	text := strings.Repeat(strings.Repeat("x", 1000)+"\n", 50)
	l := newLayout(&Options{})
	const from, to = 1001 * 7, 1001 * 43
	f := written(t, text)
	var r fileReader
	filetest.Must(t, r.open(&l, f, from, to, make([]byte, 3*blockAlign)))
	for n := 0; ; n++ {
		if r.at != to && r.at%blockAlign != 0 {
			t.Fatalf("the next read is at %d", r.at)
		}
		if end := cap(r.window) - cap(r.data) + len(r.data); r.at < to && end%blockAlign != 0 {
			t.Fatalf("the data ends at %d of the window", end)
		}
		if _, _, err := r.next(); err == io.EOF && n == 36 {
			return
		} else if err != nil {
			t.Fatalf("%v after %d records", err, n)
		}
	}
}

// A part that ends within a record is an error.
func TestTemporaryFilesThatHaveChanged(t *testing.T) {
	l := newLayout(&Options{})
	var r fileReader
	filetest.Must(t, r.open(&l, written(t, "a\nbcd\n"), 0, 4, make([]byte, 2*blockAlign)))
	if _, _, err := r.next(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.next(); err == nil || err == io.EOF {
		t.Errorf("%v, want an error", err)
	}
}

// An index of any size keeps whole keys of records in their order.
func TestMarksInLittleMemory(t *testing.T) {
	for size := 2 * markBytes; size < 40*markBytes; size += markBytes {
		x := &index{mem: make([]byte, size), stride: 1}
		for _, begin := range []int64{0, 1000} {
			x.begin(begin)
			for at := begin; at < begin+500; at++ {
				x.add(at, fmt.Appendf(nil, "%0*d", at%13+4, at))
			}
		}
		for n, m := range x.runs {
			for i := range m.len() {
				at := m.at(i)
				if want := fmt.Appendf(nil, "%0*d", at%13+4, at); !bytes.Equal(m.key(i), want) {
					t.Fatalf("%d bytes: mark %d has the key %q, want %q", size, i, m.key(i), want)
				}
			}
			if from := int64(n * 1000); m.len() > 0 && m.at(0) != from {
				t.Errorf("%d bytes: the first mark is at %d, not %d", size, m.at(0), from)
			}
		}
	}
}

// Splitters cut runs in memory into parts of about the wanted size, but for the last one, which takes what is left.
func TestSplitters(t *testing.T) {
	l := newLayout(&Options{})
	var runs []*run
	for i := range 2 {
		r := &run{}
		for n := range 1000 {
			r.entries = append(r.entries, keysort.Entry{At: uint32(len(r.text)), N: 6})
			r.text = fmt.Appendf(r.text, "%05d\n", 2*n+i)
		}
		r.bytes = int64(len(r.text))
		runs = append(runs, r)
	}
	all := splitters(&l, runs, 6*450)
	for i, s := range all {
		if at := freehold.Must(strconv.Atoi(string(s.key[:5]))); at < 450*(i+1) || at > 450*(i+1)+50 {
			t.Errorf("part %d begins at %d", i+1, at)
		}
	}
	if len(all) != 3 {
		t.Errorf("%d splitters", len(all))
	}
}
