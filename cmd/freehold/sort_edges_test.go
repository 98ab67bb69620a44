// Edges of keys, numbers and options of freehold sort.

package main

import (
	"bytes"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/extsort"
)

// gnuSort returns the path of GNU sort, if that is the system's.
func gnuSort(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("sort")
	if err != nil {
		t.Skip(err)
	}
	if out, err := exec.CommandContext(t.Context(), path, "--version").Output(); err != nil || !bytes.Contains(out, []byte("GNU coreutils")) {
		t.Skip("the system's sort is another one")
	}
	return path
}

const hugeNumber = "9223372036854775807" // math.MaxInt64

var digits126 = strings.Repeat("9", 126)

// What GNU sort 9.1 writes in the C locale, as in sortTable.
var sortEdges = []struct {
	why   string
	args  []string
	input string
	want  string
}{
	// Where keys begin and end.
	{"F.0 is the end of field F", []string{"-s", "-k2,2.0"}, "x b\ny a\n", "y a\nx b\n"},
	{"F.0 is not beyond it", []string{"-s", "-k1,1.0"}, "a 2\na 1\n", "a 2\na 1\n"},
	{"a b of the second place skips blanks there", []string{"-s", "-k1.1,2.1b"}, "a  a\na   b\n", "a   b\na  a\n"},
	{"one of the first place does not", []string{"-s", "-k1.1b,2.1"}, "a  a\na   b\n", "a  a\na   b\n"},
	{"a b of the first place skips blanks there", []string{"-s", "-k2.1b,2.1b"}, "x   b\nx a\n", "x a\nx   b\n"},
	{"a newline is a blank", []string{"-z", "-s", "-k2"}, "x\nb\x00y\na\x00", "y\na\x00x\nb\x00"},
	{"a tab is a blank", []string{"-s", "-k2"}, "x\tb\ny\ta\n", "y\ta\nx\tb\n"},
	{"a character far beyond the line is its end", []string{"-s", "-k3." + hugeNumber}, "a b d\na b c\n", "a b d\na b c\n"},
	{"so it is of the second place", []string{"-s", "-k1,3." + hugeNumber}, "a b d\na b c\n", "a b c\na b d\n"},
	{"a field far beyond the line is empty", []string{"-s", "-k" + hugeNumber + "9"}, "b\na\n", "b\na\n"},
	{"numbers may follow blanks", []string{"-s", "-k \t2,\n2"}, "x b\ny a\n", "y a\nx b\n"},
	{"a key that ends before it begins is empty", []string{"-s", "-k3,1"}, "x b\ny a\n", "x b\ny a\n"},
	{"a field ends before its separator", []string{"-s", "-t:", "-k1,1"}, "ab:\na:\na\x01:\n", "a:\na\x01:\nab:\n"},

	// Which characters count.
	{"-i drops what is beyond ~", []string{"-i", "-s"}, "b\n\x7fa\n", "\x7fa\nb\n"},
	{"-i keeps ~", []string{"-i", "-s"}, "a~\na\n", "a\na~\n"},
	{"-i keeps a space", []string{"-i", "-s"}, "b\n b\na\n", " b\na\nb\n"},
	{"-i drops a tab", []string{"-i", "-s"}, "b\n\tc\na\n", "a\nb\n\tc\n"},
	{"-f folds z", []string{"-f", "-s"}, "z\nZ\n", "z\nZ\n"},
	{"-f folds a", []string{"-f", "-s"}, "a\nA\n", "a\nA\n"},
	{"-f leaves {", []string{"-f", "-s"}, "{\nz\n[\n", "z\n[\n{\n"},
	{"-d keeps Z", []string{"-d", "-s"}, "Z\nA\n", "A\nZ\n"},
	{"-d keeps A", []string{"-d", "-s"}, "B\nAb\n", "Ab\nB\n"},
	{"-d keeps z", []string{"-d", "-s"}, "z\na\n", "a\nz\n"},
	{"-d keeps a", []string{"-d", "-s"}, "b\nab\n", "ab\nb\n"},
	{"-d keeps 0", []string{"-d", "-s"}, "a\n0b\n", "0b\na\n"},
	{"-d keeps 9", []string{"-d", "-s"}, "a\n9b\n", "9b\na\n"},
	{"-d keeps a tab", []string{"-d", "-s"}, "a\n\tb\n", "\tb\na\n"},
	{"-d drops what is beside them", []string{"-d", "-s"}, "/b\n:a\n@c\n[a\n`b\n{a\n", ":a\n[a\n{a\n/b\n`b\n@c\n"},

	// Numbers.
	{"zeros after a fraction do not count", []string{"-n", "-u"}, "0\n0.00\n-0.0\n.0\n", "0\n"},
	{"nor do they behind other digits", []string{"-n", "-u"}, "1.50\n1.5\n01.500\n", "1.50\n"},
	{"a number of 126 digits", []string{"-n", "-s"}, "1" + strings.Repeat("0", 126) + "\n" + digits126 + "\n" + digits126[1:] + "\n",
		digits126[1:] + "\n" + digits126 + "\n1" + strings.Repeat("0", 126) + "\n"},
	{"a negative one", []string{"-n", "-s"}, "-" + digits126 + "\n-1" + strings.Repeat("0", 126) + "\n", "-1" + strings.Repeat("0", 126) + "\n-" + digits126 + "\n"},
	{"a pair of zeros is no end", []string{"-k1,1n", "-k2,2", "-s"}, "1000001 a\n1000000 b\n100 z\n", "100 z\n1000000 b\n1000001 a\n"},
	{"fractions that begin with zeros", []string{"-n", "-s"}, "0.01\n0.001\n0.1\n0.0101\n", "0.001\n0.01\n0.0101\n0.1\n"},
	{"a minus is one character, before the digits", []string{"-n", "-s"}, "- 5\n--5\n-.5\n-5\n", "-5\n-.5\n- 5\n--5\n"},
	{"a number ends", []string{"-n", "-s"}, "2x9\n1,5\n1.2.9\n1.1\n", "1,5\n1.1\n1.2.9\n2x9\n"},

	// The whole order.
	{"-r of a key alone is its own", []string{"-k1,1r", "-k2,2n"}, "a 2\na 1\nb 1\n", "b 1\na 1\na 2\n"},
	{"-r is not that of a key with options, but of the last resort", []string{"-r", "-k1,1b"}, "a 1\nb 1\na 2\n", "a 2\na 1\nb 1\n"},
}

func TestSortEdges(t *testing.T) {
	for _, tt := range sortEdges {
		code, out, errs := sortCommandOf(t.Context(), tt.input, tt.args...)
		if code != 0 || out != tt.want {
			t.Errorf("%s: %q of %q gave %q, exit code %d, %s, want %q", tt.why, tt.args, tt.input, out, code, errs, tt.want)
		}
	}
}

// What the tables want is what GNU sort writes.
func TestTablesAreOfGNU(t *testing.T) {
	gnu := gnuSort(t)
	check := func(args []string, input, want string) {
		if slices.Contains(args, "--fixed") {
			return
		}
		cmd := exec.CommandContext(t.Context(), gnu, args...)
		cmd.Env = append(os.Environ(), "LC_ALL=C")
		cmd.Stdin = strings.NewReader(input)
		if got, err := cmd.Output(); err != nil || string(got) != want {
			t.Errorf("%q of %q: it gives %q, %v, and the table has %q", args, input, got, err, want)
		}
	}
	for _, tt := range sortTable {
		check(strings.Fields(tt.args), tt.input, tt.want)
	}
	for _, tt := range sortEdges {
		check(tt.args, tt.input, tt.want)
	}
	t.Chdir(t.TempDir())
	for _, tt := range sortRefusals {
		cmd := exec.CommandContext(t.Context(), gnu, tt.args...)
		if _ = cmd.Run(); cmd.ProcessState.ExitCode() != cli.Misused {
			t.Errorf("%q: it ends with %d, and freehold with %d", tt.args, cmd.ProcessState.ExitCode(), cli.Misused)
		}
	}
}

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

// Options that GNU sort refuses, too.
var sortRefusals = []struct {
	args []string
	want string
}{
	{[]string{"-c", "-o", "file"}, "-c and -o exclude each other"},
	{[]string{"-C", "-o", "file"}, "-c and -o exclude each other"},
	{[]string{"-cC"}, "-c and -C exclude each other"},
	{[]string{"-k1,0"}, "fields are counted from 1"},
	{[]string{"-k1,1.x"}, "a number is missing after the period"},
	{[]string{"-k1.x"}, "a number is missing after the period"},
	{[]string{"-k1,1q"}, "its options are of"},
	{[]string{"-t", ""}, "the separator is missing"},
	{[]string{"-ni"}, "options -in are incompatible"},
	{[]string{"-k1n", "-k2nd"}, "options -dn are incompatible"},
}

func TestSortRefuses(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, tt := range sortRefusals {
		code, out, errs := sortCommandOf(t.Context(), "a\n", tt.args...)
		if code != cli.Misused || out != "" || !strings.Contains(errs, tt.want) {
			t.Errorf("%q: exit code %d, %q, %q, want %d and %q", tt.args, code, out, errs, cli.Misused, tt.want)
		}
	}
	if left, _ := os.ReadDir("."); len(left) > 0 {
		t.Errorf("mistakes left %v", left)
	}
}

// An error about a line names the file that has it.
func TestSortNamesTheFileOfALongLine(t *testing.T) {
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
	for i, text := range []string{"x\n", "y\n" + strings.Repeat("z", 1<<20)} {
		if err := os.WriteFile(files[i], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, option := range []string{"-s", "-m"} {
		code, _, errs := sortCommandOf(t.Context(), "", append([]string{option}, files...)...)
		if want := "freehold: " + files[1] + ": the line or record at byte 2 is longer than"; code != cli.Misused || !strings.HasPrefix(errs, want) {
			t.Errorf("%s: exit code %d, %q, want %q", option, code, errs, want)
		}
	}
}

// Keys cost memory. Whole lines have none, in either direction.
func TestWholeLinesHaveNoKey(t *testing.T) {
	for _, c := range []sortCommand{{}, {Reverse: true}, {Unique: true}, {Stable: true}} {
		if o, err := c.options(); err != nil || o.Key != nil {
			t.Errorf("%+v: %v, with a key", c, err)
		}
	}
}

func TestSortSizes(t *testing.T) {
	const least = extsort.MinMemoryBytes
	total, _ := budget.Memory()
	tenth := 10 * (float64(total) / 100)
	if tenth > math.MaxInt/2 {
		tenth = 0
	}
	tests := []struct {
		text sortSize
		want int // 0 means an error
	}{
		{"262144b", least}, {"262143b", 0},
		{"256", least}, {"255", 0}, {"256K", least}, {"256k", least}, {"256KiB", least},
		{"1M", 1 << 20}, {"1m", 1 << 20}, {"1MiB", 1 << 20}, {".5M", 1 << 19}, {"0.25M", least},
		{"0.5G", 1 << 29}, {"0.5g", 1 << 29}, {"0.5GiB", 1 << 29}, {"0.000244140625T", 1 << 28}, {"0.000244140625t", 1 << 28}, {"0.000244140625TiB", 1 << 28},
		{"10%", int(tenth)},
		{"0", 0}, {"", -1}, {"M", 0}, {"1..5M", 0}, {"-1M", 0}, {"1E", 0}, {"1MM", 0}, {"99999999T", 0},
	}
	for _, tt := range tests {
		got, err := tt.text.bytes()
		switch {
		case tt.want == -1:
			if err != nil || got < leastDefault {
				t.Errorf("the default is %d, %v, want %d at least", got, err, leastDefault)
			}
		case (err == nil) != (tt.want != 0) || err == nil && got != tt.want:
			t.Errorf("-S %s: %d, %v, want %d", tt.text, got, err, tt.want)
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
