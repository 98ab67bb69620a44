// Edges of keys, numbers and options of freehold sort.

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/extsort"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

func TestSortOfFixedRecords(t *testing.T) {
	tests := []struct {
		args  string
		input string
		code  int
		want  string // output, or a part of the error
	}{
		{"--fixed 2 -u", "cadbca", 0, "cadb"},
		{"--fixed 2 -u --key 1:1", "cadbea", 0, "cadb"},
		{"--fixed 2 --key 0:2", "cadbab", 0, "abcadb"},
		{"--fixed 2 -c", "b\na\n", 1, "freehold: -:2: disorder: 610a\n"},
		{"--fixed 2 -c -u", "a\na\n", 1, "freehold: -:2: disorder: 610a\n"},
		{"--fixed 2 --key 2:1", "", 2, "not within a record of 2 bytes"},
		{"--fixed 2 --key 1:2", "", 2, "not within a record of 2 bytes"},
		{"--fixed 2 --key 0:0", "", 2, "not within a record of 2 bytes"},
		{"--fixed 4 --key 1:1 --key 2:1", "", 2, "once"},
		{"--fixed 4 --key 1:_1", "", 2, "OFFSET:LENGTH"},
		{"--fixed 4 --key _1:1", "", 2, "OFFSET:LENGTH"},
		{"--fixed 4 --key 1:1_", "", 2, "OFFSET:LENGTH"},
		{"--fixed 4 --key 1:1x", "", 2, "OFFSET:LENGTH"},
		{"--fixed 4 -z", "", 2, "compared by their bytes"},
		{"--fixed 4 -f", "", 2, "compared by their bytes"},
		{"--fixed 4 -b", "", 2, "compared by their bytes"},
		{"--fixed 4 -d", "", 2, "compared by their bytes"},
		{"--fixed 4 -i", "", 2, "compared by their bytes"},
		{"--fixed 4 -t:", "", 2, "compared by their bytes"},
	}
	for _, tt := range tests {
		args := strings.Fields(tt.args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "_", " ")
		}
		code, out, errs := sortCommandOf(t.Context(), tt.input, args...)
		if code != tt.code || code == 0 && out != tt.want || code != 0 && (out != "" || !strings.Contains(errs, tt.want)) {
			t.Errorf("%q: exit code %d, %q, %q, want %d and %q", args, code, out, errs, tt.code, tt.want)
		}
	}
}

// An error about a line names the file that has it.
func TestSortNamesTheFileOfALongLine(t *testing.T) {
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
	for i, text := range []string{"x\n", "y\n" + strings.Repeat("z", 1<<20)} {
		filetest.Must(t, os.WriteFile(files[i], []byte(text), 0o600))
	}
	for _, option := range []string{"-s", "-m"} {
		code, _, errs := sortCommandOf(t.Context(), "", append([]string{option}, files...)...)
		if want := "freehold: " + files[1] + ": the line or record at byte 2 is longer than"; code != cli.Misused || !strings.HasPrefix(errs, want) {
			t.Errorf("%s: exit code %d, %q, want %q", option, code, errs, want)
		}
	}
}

func TestSortState(t *testing.T) {
	tests := []struct {
		now      extsort.Progress
		fraction float64
		text     string
	}{
		{extsort.Progress{Phase: extsort.PhaseReading, Done: 1 << 20, Total: 2 << 20}, 0.25, "1s left"},
		{extsort.Progress{Phase: extsort.PhaseMerging, Done: 1 << 20, Total: 2 << 20}, 0.625, "1s left"},
		{extsort.Progress{Phase: extsort.PhaseWriting, Done: 1 << 20, Total: 2 << 20}, 0.875, "1s left"},
		{extsort.Progress{Phase: extsort.PhaseWriting, Done: 3 << 20, Total: 2 << 20}, 1, "0s left"},
		{extsort.Progress{Phase: extsort.PhaseReading, Done: 1 << 20}, 0, "/s"},
	}
	for _, tt := range tests {
		fraction, text := sortState(tt.now, time.Second)
		if fraction != tt.fraction || !strings.HasPrefix(text, tt.now.Phase.String()) || !strings.HasSuffix(text, tt.text) {
			t.Errorf("%+v: %v, %q, want %v and %q", tt.now, fraction, text, tt.fraction, tt.text)
		}
	}
}

// The rate that the bar shows is of the phase.
func TestPhasesBeginAnew(t *testing.T) {
	var out bytes.Buffer
	p := newSortProgress(&out)
	before := p.started.Add(-time.Hour)
	p.began = before
	p.show(extsort.Progress{Phase: p.phase, Done: 1, Total: 2})
	if p.began != before {
		t.Error("a report of the same phase begins it anew")
	}
	p.show(extsort.Progress{Phase: extsort.PhaseWriting, Done: 1, Total: 2})
	if p.began.Before(p.started) {
		t.Error("a phase begins with the one before")
	}
	p.close()
	p.show(extsort.Progress{Phase: extsort.PhaseMerging, Done: 1, Total: 2})
	if p.phase != extsort.PhaseWriting {
		t.Error("a closed bar takes reports")
	}
}
