package simulate

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

const usual = 1000 // bytes of a value without a size

// requestsOf reads a trace from a file of that name.
func requestsOf(t *testing.T, name, content, format string, limit int) ([]request, error) {
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	tr, err := source{path, format, nil, usual, limit}.read(context.Background(), func(float64) {})
	if err != nil {
		return nil, err
	}
	return tr.requests, nil
}

func packed(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write([]byte(text))
	z.Close()
	return b.String()
}

// TestFormats: requests of each format, and what is guessed of a file without one.
func TestFormats(t *testing.T) {
	oracle := binary.LittleEndian.AppendUint32(nil, 1) // the time
	oracle = binary.LittleEndian.AppendUint64(oracle, 7)
	oracle = binary.LittleEndian.AppendUint32(oracle, 30)
	oracle = binary.LittleEndian.AppendUint64(oracle, 0)
	for _, tt := range []struct {
		name, format, content string
		limit                 int
		want                  []request
	}{
		{"keys", "", "5\n\n# no key\n5\n6\n", 0, []request{{5, usual}, {5, usual}, {6, usual}}},
		{"keys", "", "*\n5\n6\n7\n", 2, []request{{5, usual}, {6, usual}}},
		{"packed.gz", "", packed("5\n"), 0, []request{{5, usual}}},
		{"sizes", "", "5,10\r\n6 20\n", 0, []request{{5, 10}, {6, 20}}},
		{"sizes", "", "key,size\n5,10\n", 0, []request{{5, 10}}},
		{"timed", "", "1,5,10\n2,6,20,0\n", 0, []request{{5, 10}, {6, 20}}},
		{"a.lis", "", "5 2 0 0\n8 1 0 1\n", 0, []request{{5, usual}, {6, usual}, {8, usual}}},
		{"a", "", "5 2 0 0\n", 0, []request{{5, usual}, {6, usual}}},
		{"a.lis", "extents", "5 2 0 0\n", 0, []request{{5, 1024}}},
		{"a", "words", "\x00\x00\x00\x00\x00\x00\x01\x02", 0, []request{{258, usual}}},
		{"a", "words4", "\x00\x00\x01\x02\x00\x00\x00\x03", 0, []request{{258, usual}, {3, usual}}},
		{"a.oracleGeneral.bin", "", string(oracle), 0, []request{{7, 30}}},
	} {
		got, err := requestsOf(t, tt.name, tt.content, tt.format, tt.limit)
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s of %q: %v, %v, want %v", tt.name, tt.content, got, err, tt.want)
		}
	}
	got, err := requestsOf(t, "text", "user:1\nuser:2\nuser:1\n", "", 0)
	if err != nil || got[0] != got[2] || got[0] == got[1] {
		t.Errorf("keys of text: %v, %v", got, err)
	}
}

// TestBadFiles: errors say the file, the line and what is wrong.
func TestBadFiles(t *testing.T) {
	for _, tt := range []struct{ content, format, want string }{
		{"", "", "a: no requests"},
		{"5,10\n6\n", "", "line 2 of format sizes: 1 fields, want 2"},
		{"5,10\n6,x\n", "", `line 2 of format sizes: field 2, "x", is no number below 2^32`},
		{"\x00\x01", "words4", "unexpected EOF"},
		{"\x28\xb5\x2f\xfd", "", "zstd -dc FILE | lab simulate -"},
		{"\xfd7zX", "", "xz -dc FILE | lab simulate -"},
	} {
		if _, err := requestsOf(t, "a", tt.content, tt.format, 0); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.content, err, tt.want)
		}
	}
}

// loops has a trace of a loop over n keys.
func loops(n, times int) string {
	var b strings.Builder
	for range times {
		for i := range n {
			fmt.Fprintf(&b, "%d,%d\n", i, 500)
		}
	}
	return b.String()
}

func defaults() Command {
	return Command{Files: []string{"-"}, Format: "auto", Value: usual, Percent: []float64{200. / 3}}
}

// TestTable: of a loop over all keys, each cache with room for all answers all but the first
// requests, and LRU without room answers none.
func TestTable(t *testing.T) {
	c := defaults()
	c.CSV = true
	c.Percent = []float64{0.1, 66.6, 100}
	var out bytes.Buffer
	if err := c.Run(context.Background(), cli.Streams{In: strings.NewReader(loops(2000, 4)), Out: &out, Err: &out}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if want := "trace,hits of,bound,percent,freehold,otter,theine,freecache,LRU"; len(lines) != 7 || lines[0] != want {
		t.Fatalf("%d lines: %s", len(lines), out.String())
	}
	for i, want := range map[int]string{
		1: "-,requests,1048,0.1,-,-,-,-,-", // less than the least bound
		4: "-,bytes,697968,66.6,",
		5: "-,requests,1048000,100,",
	} {
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("line %d: %s, want %s", i, lines[i], want)
		}
	}
	if !strings.HasSuffix(lines[3], ".0000") || !strings.HasSuffix(lines[5], ".7500") {
		t.Errorf("LRU: %s and %s", lines[3], lines[5])
	}
}

// TestTooSmall: below the table it says why a bound has no figures.
func TestTooSmall(t *testing.T) {
	for percent, want := range map[float64]bool{1: true, 100: false} {
		c := defaults()
		c.Percent = []float64{percent}
		var out bytes.Buffer
		err := c.Run(context.Background(), cli.Streams{In: strings.NewReader(loops(2000, 2)), Out: &out, Err: &out})
		if got := strings.Contains(out.String(), "\n-: the bound is below 256 KiB"); err != nil || got != want {
			t.Errorf("%v%%: %v, %s", percent, err, out.String())
		}
	}
}

// TestBounds: from percents, sizes and entries.
func TestBounds(t *testing.T) {
	c := defaults()
	c.Percent = []float64{1, 50}
	if got := c.bounds(1000); !reflect.DeepEqual(got, []int{10, 500}) {
		t.Error(got)
	}
	c.Size, c.Entries = []cli.Size{5000}, []int{3}
	if got := c.bounds(1000); !reflect.DeepEqual(got, []int{5000, 3 * (usual + keyBytes)}) {
		t.Error(got)
	}
}

// TestMisuse: flags that make no sense, and an interrupt.
func TestMisuse(t *testing.T) {
	for want, change := range map[string]func(c *Command){
		"--cache x: want one of":  func(c *Command) { c.Cache = []string{"x"} },
		"--percent 0: want":       func(c *Command) { c.Percent = []float64{0} },
		"--entries [-1], --limit": func(c *Command) { c.Entries = []int{-1} },
	} {
		c := defaults()
		change(&c)
		err := c.Run(context.Background(), cli.Streams{})
		var e *cli.Error
		if !errors.As(err, &e) || e.Code != cli.Misused || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c := defaults()
	if err := c.Run(ctx, cli.Streams{In: strings.NewReader("5\n"), Err: &bytes.Buffer{}}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
