package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

// sortCommandOf runs freehold sort with an input.
func sortCommandOf(ctx context.Context, input string, args ...string) (code int, out, err string) {
	var o, e bytes.Buffer
	code = run(ctx, append([]string{"sort", "-S", "2M"}, args...), cli.Streams{Out: &o, Err: &e, In: strings.NewReader(input)})
	return code, o.String(), e.String()
}

// What GNU sort 9.1 writes in the C locale.
var sortTable = []struct {
	args  string
	input string
	want  string
}{
	{"", "b\na\nc", "a\nb\nc\n"},
	{"", "", ""},
	{"", "a\x00\na\nB\n\xff\n", "B\na\na\x00\n\xff\n"},
	{"-r", "b\na\nab\n", "b\nab\na\n"},
	{"-u", "b\na\nb\n", "a\nb\n"},
	{"-ru", "b\na\nb\n", "b\na\n"},
	{"-z", "b\x00a\nc\x00", "a\nc\x00b\x00"},
	{"-m", "b\na\n", "b\na\n"},
	{"--check --check=diagnose-first", "a\nb\n", ""},
	{"--fixed 2", "cadbab", "abcadb"},
	{"--fixed 2 --key 1:1", "cadbab", "cadbab"},
	{"--fixed 2 --key 1:1 -r", "cadbab", "dbabca"},
}

func TestSortTable(t *testing.T) {
	for _, tt := range sortTable {
		t.Run(tt.args, func(t *testing.T) {
			code, out, errs := sortCommandOf(t.Context(), tt.input, strings.Fields(tt.args)...)
			if code != 0 || out != tt.want {
				t.Errorf("%q gave %q, exit code %d, %s, want %q", tt.input, out, code, errs, tt.want)
			}
		})
	}
}

func TestSortMistakes(t *testing.T) {
	dir := t.TempDir()
	tests := []struct {
		args string
		code int
		want string
	}{
		{"-c", 1, "freehold: -:2: disorder: a\n"},
		{"-C", 1, ""},
		{"--check", 1, "freehold: -:2: disorder: a\n"},
		{"--check=diagnose-first", 1, "freehold: -:2: disorder: a\n"},
		{"--check=quiet", 1, ""},
		{"--check=silent -C", 1, ""},
		{"--check=quiet -c", 2, "exclude each other"},
		{"--check=loud", 2, "not one of quiet, silent and diagnose-first"},
		{"-c -o file", 2, "-c and -o exclude each other"},
		{"-C -o file", 2, "-c and -o exclude each other"},
		{"-cC", 2, "-c and -C exclude each other"},
		{"-c -r", 0, ""},
		{"-h", 2, "unknown flag -h"},
		{"-nV", 2, "unknown flag -V"},
		{"--debug", 2, "unknown flag --debug; see freehold sort --help"},
		{"--batch-size=16", 2, "unknown flag --batch-size"},
		{"--files0-from x", 2, "unknown flag --files0-from"},
		{"-y", 2, "unknown flag -y"},
		{"--revers", 2, "unknown flag --revers, did you mean \"--reverse\"?"},
		{"-o x -o y", 2, "only one is allowed"},
		{"--reverse=false", 2, "takes no value"},
		{"--parallel=0", 2, "--parallel 0"},
		{"--fixed=0", 2, "at least one byte"},
		{"-c a b", 2, `extra operand "b"`},
		{"-k -1", 2, "a number is missing"},
		{"--key -1", 2, "a number is missing"},
		{"-S 1", 2, "too little"},
		{"-S x", 2, "not a size"},
		{"-S -5", 2, "-S -5 is not a size: write a number of KiB"},
		{"--buffer-size -5", 2, "-S -5 is not a size: write a number of KiB"},
		{"-nS -5", 2, "-S -5 is not a size"},
		{"-S --", 2, "-S -- is not a size"},
		{"-S 1X", 2, "not a unit"},
		{"--parallel=-1", 2, "--parallel -1"},
		{"--parallel -1", 2, "--parallel -1: want 1 or more"},
		{"--parallel x", 2, `--parallel: expected a valid 64 bit int but got "x"`},
		{"-t -5", 2, "-t -5: the separator is one character"},
		{"-T -x", 2, "-x: no such file"},
		{"-S", 2, "--buffer-size"},
		{"-T " + dir + "/missing", 2, "no such file"},
		{"-o " + dir + "/missing/out", 2, "no such file"},
		{"-o " + dir, 2, "is a directory"},
		{dir + "/missing", 2, "cannot read: stat " + dir + "/missing"},
		{dir, 2, "is a directory"},
		{"--fixed -1", 2, "at least one byte"},
		{"--fixed 3", 2, "freehold: -: its size of 4 bytes is not a multiple of --fixed 3\n"},
		{"--fixed 99999999999", 2, "--fixed"}, // more than 4 bytes can say
		{"--fixed 2147483648", 2, "--fixed"},
		{"--fixed 4 --key 3:2", 2, "not within a record"},
		{"--fixed 4 --key 1", 2, "OFFSET:LENGTH"},
		{"--fixed 4 -n", 2, "compared by their bytes"},
		{"--nothing", 2, "unknown flag"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			code, out, errs := sortCommandOf(t.Context(), "b\na\n", strings.Fields(tt.args)...)
			if code != tt.code || !strings.Contains(errs, tt.want) || out != "" || tt.want == "" && errs != "" {
				t.Errorf("exit code %d, %q, %q, want %d and %q", code, out, errs, tt.code, tt.want)
			}
		})
	}
	if code, _, errs := sortCommandOf(t.Context(), "b\x00a\x00", "-zc"); code != 1 || errs != "freehold: -:2: disorder: a\x00" {
		t.Errorf("-zc: exit code %d, %q", code, errs)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("mistakes left %v", left)
	}
	long := strings.Repeat("x", 1<<20)
	if code, _, errs := sortCommandOf(t.Context(), "a\n"+long); code != 2 || !strings.Contains(errs, "-: the line or record at byte 2 is longer than") {
		t.Errorf("a line that is too long: exit code %d, %q", code, errs)
	}
}

// -o - names a file, as in GNU sort.
func TestSortToAFileNamedMinus(t *testing.T) {
	t.Chdir(t.TempDir())
	code, out, errs := sortCommandOf(t.Context(), "b\na\n", "-o", "-")
	if got, _ := os.ReadFile("-"); code != 0 || out != "" || string(got) != "a\nb\n" {
		t.Errorf("exit code %d, %q, %s, and the file has %q", code, out, errs, got)
	}
}

// The value of a flag may begin with a minus, as in GNU sort.
func TestSortValuesThatBeginWithMinus(t *testing.T) {
	t.Chdir(t.TempDir())
	filetest.Must(t, os.WriteFile("-n", []byte("b-2\na-1\n"), 0o600))
	for _, args := range [][]string{
		{"-o", "-n", "--", "-n"}, {"--output", "-n", "--", "-n"}, {"-so", "-n", "--", "-n"}, {"-o", "-n", "-t", "-", "-k2", "--", "-n"},
	} {
		code, out, errs := sortCommandOf(t.Context(), "", args...)
		if got, _ := os.ReadFile("-n"); code != 0 || out != "" || string(got) != "a-1\nb-2\n" {
			t.Errorf("%q: exit code %d, %q, %s, and the file has %q", args, code, out, errs, got)
		}
	}
	if code, _, errs := sortCommandOf(t.Context(), "b", "-o", "--", "-n"); code != 0 {
		t.Errorf("-o -- -n: exit code %d, %s", code, errs)
	}
	if got, _ := os.ReadFile("--"); string(got) != "b\n" {
		t.Errorf("the file named -- has %q", got)
	}
}

// Input that ends within a record is named.
func TestSortOfAPartOfARecord(t *testing.T) {
	dir := t.TempDir()
	whole, part := filepath.Join(dir, "whole"), filepath.Join(dir, "part")
	if os.WriteFile(whole, make([]byte, 300_000), 0o600) != nil || os.WriteFile(part, make([]byte, 400_001), 0o600) != nil {
		t.Fatal("no files")
	}
	for _, flags := range []string{"--fixed 100", "--fixed 100 -m", "--fixed 100 -S 256K", "--fixed 100 --key 0:8"} {
		code, out, errs := sortCommandOf(t.Context(), "", append(strings.Fields(flags), whole, part)...)
		if want := "freehold: " + part + ": its size of 400,001 bytes is not a multiple of --fixed 100\n"; code != 2 || errs != want || strings.Contains(flags, "-m") != (out != "") {
			t.Errorf("%s: exit code %d, %d bytes of output, %q, want %q", flags, code, len(out), errs, want)
		}
	}
}

func TestSortFilesOntoThemselves(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	filetest.Must(t, os.WriteFile(file, []byte("c\na"), 0o600))
	code, _, errs := sortCommandOf(t.Context(), "b", "-o", file, file, "-")
	if got, _ := os.ReadFile(file); code != 0 || string(got) != "a\nb\nc\n" {
		t.Errorf("exit code %d, %q, %q", code, errs, got)
	}
	if code, _, errs := sortCommandOf(t.Context(), "aa\n", "-m", "-o", file, file, "-"); code != 0 {
		t.Errorf("-m: exit code %d, %q", code, errs)
	}
	if got, _ := os.ReadFile(file); string(got) != "a\naa\nb\nc\n" {
		t.Errorf("-m: %q", got)
	}
	if code, _, _ := sortCommandOf(t.Context(), "b", "-o", file, file, file+"2"); code != 2 {
		t.Errorf("exit code %d for a missing file", code)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, _ := sortCommandOf(ctx, "b", "-o", file, file); code != cli.Interrupted {
		t.Errorf("exit code %d, want that of an interrupt", code)
	}
	if got, _ := os.ReadFile(file); string(got) != "a\naa\nb\nc\n" {
		t.Errorf("a sort that failed left %q", got)
	}
}

// -o follows a symbolic link, as GNU sort does, also to a file that is not there.
func TestSortToALink(t *testing.T) {
	dir := t.TempDir()
	link, target := filepath.Join(dir, "link"), filepath.Join(dir, "target")
	if err := os.Symlink("target", link); err != nil {
		t.Skip(err)
	}
	for _, in := range []string{"b\na\n", "d\nc\n"} {
		if code, _, errs := sortCommandOf(t.Context(), in, "-o", link); code != 0 {
			t.Fatalf("exit code %d, %s", code, errs)
		}
		info, err := os.Lstat(target)
		if got, _ := os.ReadFile(link); err != nil || !info.Mode().IsRegular() || len(got) != len(in) || got[0] >= got[2] {
			t.Errorf("the link leads to %q, %v", got, err)
		}
	}
}

// Random options and inputs give the same output as the system's sort.
func TestSortAsGNU(t *testing.T) {
	gnu, err := exec.LookPath("sort")
	if err != nil {
		t.Skip(err)
	}
	if out, err := exec.CommandContext(t.Context(), gnu, "--version").Output(); err != nil || !bytes.Contains(out, []byte("GNU coreutils")) {
		t.Skip("the system's sort is another one")
	}
	rounds := 600
	if testing.Short() {
		rounds = 60
	}
	r := rand.New(rand.NewPCG(5, 6))
	for range rounds {
		args, input := randomSort(r)
		cmd := exec.CommandContext(t.Context(), gnu, args...)
		cmd.Env = append(os.Environ(), "LC_ALL=C")
		cmd.Stdin = strings.NewReader(input)
		want, _ := cmd.Output()
		code, out, errs := sortCommandOf(t.Context(), input, args...)
		if code != cmd.ProcessState.ExitCode() || out != string(want) {
			t.Fatalf("%q of %q: exit code %d, %q, %s, want %d, %q", args, input, code, out, errs, cmd.ProcessState.ExitCode(), want)
		}
	}
}

// randomSort returns options and an input for them.
func randomSort(r *rand.Rand) (args []string, input string) {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	letters := func(of string, most int) string {
		var b strings.Builder
		for range r.IntN(most + 1) {
			b.WriteByte(of[r.IntN(len(of))])
		}
		return b.String()
	}
	place := func(least int) string {
		s := fmt.Sprint(1 + r.IntN(3))
		if r.IntN(3) == 0 {
			s += fmt.Sprint(".", least+r.IntN(3))
		}
		return s + letters("bdfinr", 2)
	}
	for _, c := range "nrfbdius" {
		if r.IntN(8) == 0 {
			args = append(args, "-"+string(c))
		}
	}
	for range r.IntN(3) {
		key := place(1)
		if r.IntN(2) == 0 {
			key += "," + place(0)
		}
		args = append(args, slices.Concat([]string{"-k"}, []string{key})...)
	}
	if r.IntN(3) == 0 {
		args = append(args, "-t"+pick(",", " ", "\t", "a", `\0`))
	}
	if r.IntN(8) == 0 {
		args = append(args, pick("-c", "-C", "-m", "-z"))
	}
	alphabet := pick("ab", "a b\t", "0123456789-. ", "aAbB,:; \t01.-", "\x00\x01\x02\x1f ~\x7f\x80\xff", "01\x00-")
	lines := make([]string, r.IntN(60))
	for i := range lines {
		lines[i] = letters(alphabet, 4+r.IntN(30))
	}
	return args, strings.Join(lines, "\n")
}
