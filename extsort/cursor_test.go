package extsort

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/file/spill"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

// A cursor compares a record with the one before it while that is in memory. A new
// window has records in the place of the old ones, equal to the first of the new ones
// here. All words are equal.
func TestCursorComparesWithWhatIsThere(t *testing.T) {
	const record = 16
	l := newLayout(&Options{Format: Fixed(record)})
	f := freehold.Must(spill.Create("extsort", t.TempDir()))
	defer f.Close()
	filetest.Must(t, f.EndDirect()) // for a window that is not aligned
	text := strings.Repeat("one word aaaaaaa", blockAlign/record) + strings.Repeat("one word bbbbbbb", blockAlign/record)
	if _, err := f.File.WriteAt([]byte(text), 0); err != nil {
		t.Fatal(err)
	}
	c := &cursor{l: &l}
	if err := c.open(&run{file: f}, 0, int64(len(text)), make([]byte, blockAlign)); err != nil {
		t.Fatal(err)
	}
	for i := range len(text) / record {
		filetest.Must(t, c.advance())
		if first := i*record%blockAlign == 0; c.repeat == first {
			t.Errorf("record %d: repeat is %t", i, c.repeat)
		}
	}
	if err := c.advance(); err != nil || !c.ended || c.repeat {
		t.Errorf("at the end: ended %t, repeat %t, %v", c.ended, c.repeat, err)
	}
}

// pieces is a reader with one result for each Read.
type pieces []string

func (p *pieces) Read(b []byte) (int, error) {
	if len(*p) == 0 {
		return 0, io.EOF
	}
	n := copy(b, (*p)[0])
	if n < len((*p)[0]) {
		return n, errors.New("a piece larger than a read")
	}
	*p = (*p)[1:]
	return n, nil
}

// The records of a stream are in memory until it reads more.
func TestMergeOfStreamsThatRepeat(t *testing.T) {
	a, b := strings.Repeat("one word a\n", 100), strings.Repeat("one word b\n", 100)
	var out bytes.Buffer
	if err := Merge(context.Background(), &out, &Options{}, &pieces{a, b}, &pieces{a, a}); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), a+a+a+b; got != want {
		t.Errorf("%.20q…", got)
	}
}
