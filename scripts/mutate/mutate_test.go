package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// Every entry fits the code as it is: a list that does not say what it breaks
// breaks nothing.
func TestListsFitTheCode(t *testing.T) {
	all, err := readLists(lists)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		source, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(m.file)))
		if err != nil {
			t.Errorf("%v: %v", m, err)
		} else if _, err := m.apply(string(source)); err != nil {
			t.Errorf("%v: %v", m, err)
		}
	}
}

func TestParse(t *testing.T) {
	all, err := readLists(fstest.MapFS{"noun.txt": {Data: []byte(`# A comment.

== one
file: a/b.go
-- old
	x := 1
	y := 2
-- new
	x := 3

== two
file: c.s
after: TEXT ·f
test: GOGC=1 ./d ./e -run X
-- old
ADDQ
-- new
`)}, "other.go": {}})
	want := []mutation{
		{list: "noun", name: "one", file: "a/b.go", test: "-short ./a", old: "\tx := 1\n\ty := 2", new: "\tx := 3"},
		{list: "noun", name: "two", file: "c.s", after: "TEXT ·f", test: "GOGC=1 ./d ./e -run X", old: "ADDQ"},
	}
	if err != nil || len(all) != len(want) || all[0] != want[0] || all[1] != want[1] {
		t.Errorf("%+v, %v, want %+v", all, err, want)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, text := range map[string]string{
		`"x" stands before the first mutation`: "x\n== a\nfile: f\n-- old\nb\n-- new\n",
		`needs the lines`:                      "== a\nfile: f\n-- old\nb\n",
		`names no file`:                        "== a\n-- old\nb\n-- new\n",
		`old text is empty`:                    "== a\nfile: f\n-- old\n-- new\nb\n",
		`changes nothing`:                      "== a\nfile: f\n-- old\nb\n-- new\nb\n",
		`"fiel: f" is no file:`:                "== a\nfiel: f\n-- old\nb\n-- new\n",
		`two of this name`:                     "== a\nfile: f\n-- old\nb\n-- new\n== a\nfile: f\n-- old\nb\n-- new\n",
	} {
		if _, err := parse("list", text); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want one with %q", err, name)
		}
	}
}

func TestApply(t *testing.T) {
	const source = "func a() { x() }\nfunc b() { x(); x(); y() }\n"
	for _, tt := range []struct {
		m    mutation
		want string // the error's beginning with a !
	}{
		{mutation{old: "y()", new: "z()"}, "func a() { x() }\nfunc b() { x(); x(); z() }\n"},
		{mutation{after: "func b", old: "x()", new: "z()"}, "func a() { x() }\nfunc b() { z(); x(); y() }\n"},
		{mutation{file: "f", old: "x()"}, "!f has the old text 3 times, not once"},
		{mutation{file: "f", old: "z()"}, "!f has the old text 0 times, not once"},
		{mutation{file: "f", after: "func b", old: "a()"}, "!f has the old text 0 times, not once"},
		{mutation{file: "f", after: "func", old: "y()"}, `!f has "func" 2 times, not once`},
		{mutation{file: "f", after: "func c", old: "y()"}, `!f has "func c" 0 times, not once`},
	} {
		got, err := tt.m.apply(source)
		if err != nil {
			got = "!" + err.Error()
		}
		if got != tt.want {
			t.Errorf("%+v:\n%s\nwant\n%s", tt.m, got, tt.want)
		}
	}
}

// toy is a module with promises, of which the tests hold some.
var toy = fstest.MapFS{
	"go.mod":   {Data: []byte("module toy\n\ngo 1.26\n")},
	"other.go": {Data: []byte("//go:build !amd64\n\npackage toy\n\nfunc three() int { return 3 }\n")},
	"three_amd64.go": {Data: []byte(`package toy

func three() int
`)},
	"three_amd64.s": {Data: []byte("TEXT ·three(SB), 4, $0-8\n\tMOVQ $3, ret+0(FP)\n\tRET\n")},
	"toy.go": {Data: []byte(`package toy

func One() int { return 1 }
func Two() int { return 2 }
func Three() int { return three() }
`)},
	"toy_test.go": {Data: []byte(`package toy

import "testing"

func TestOne(t *testing.T) {
	for n := One(); n < 1; n = One() {
	}
	if One() != 1 {
		t.Error()
	}
}

func TestThree(t *testing.T) {
	t.Run("deep", func(t *testing.T) {
		if Three() != 3 {
			t.Error()
		}
	})
}

func TestRefuses(t *testing.T) { t.Error() }
`)},
}

func TestTry(t *testing.T) {
	if testing.Short() {
		t.Skip("calls go test a dozen times")
	}
	if _, err := os.Stat(filepath.Join(runtime.GOROOT(), "bin")); err != nil {
		t.Skip("there is no go command here")
	}
	t.Setenv("GOWORK", "off")
	dir := t.TempDir()
	if err := os.CopyFS(dir, toy); err != nil {
		t.Fatal(err)
	}
	const good = ". -run One|Three"
	three := mutation{file: "three_amd64.s", test: good, old: "$3", new: "$4"}
	if runtime.GOARCH != "amd64" {
		three = mutation{file: "other.go", test: good, old: "return 3", new: "return 4"}
	}
	tests := []struct {
		m      mutation
		want   verdict
		reason string
	}{
		{mutation{file: "toy.go", test: good, old: "return 1", new: "return 9"}, killed, "TestOne"},
		{mutation{file: "toy.go", test: good, old: "return 1", new: "panic(7)"}, killed, "TestOne, which crashed"},
		{mutation{file: "toy.go", test: good, old: "return 1", new: "return 0"}, killed, "TestOne, which timed out"},
		{three, killed, "TestThree"},
		{mutation{file: "toy.go", test: good, old: "return 2", new: "return 9"}, survived, "go test " + good},
		{mutation{file: "toy.go", test: good, old: "return 1", new: "return x"}, failed, "toy.go:3:25: undefined: x"},
		{mutation{file: "toy.go", test: good, old: "return 5", new: "return 6"}, failed, "toy.go has the old text 0 times, not once"},
		{mutation{file: "gone.go", test: good, old: "return 5", new: "return 6"}, failed, "gone.go"},
		{mutation{file: "toy.go", test: ".", old: "return 1", new: "return 9"}, failed, "fails without the mutation: TestRefuses"},
		{mutation{file: "toy.go", test: ". -run Nobody", old: "return 1", new: "return 9"}, failed, "no test runs"},
		{mutation{file: "toy.go", test: "./nowhere", old: "return 1", new: "return 9"}, failed, "nowhere"},
	}
	var all []mutation
	for _, tt := range tests {
		all = append(all, tt.m)
	}
	done := 0
	outcomes := newRunner(dir, 3*time.Second).tryAll(t.Context(), all, 2, func(mutation, outcome) { done++ })
	for i, o := range outcomes {
		if want := tests[i]; o.verdict != want.want || o.verdict != failed && o.reason != want.reason || !strings.Contains(o.reason, want.reason) {
			t.Errorf("%s to %s: %v: %s, want %v: %s", want.m.old, want.m.new, o.verdict, o.reason, want.want, want.reason)
		}
	}
	if done != len(tests) {
		t.Errorf("%d of %d are told", done, len(tests))
	}
	fs.WalkDir(toy, ".", func(name string, d fs.DirEntry, err error) error {
		if d.IsDir() {
			return nil
		}
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != string(toy[name].Data) {
			t.Errorf("%s has changed", name)
		}
		return nil
	})
}

func TestSummary(t *testing.T) {
	all := []mutation{{list: "heap", name: "a"}, {list: "heap", name: "b"}, {list: "vm", name: "a"}}
	var text strings.Builder
	if err := summarize(&text, all, []outcome{{}, {}, {}}); err != nil {
		t.Errorf("all killed: %v", err)
	}
	text.Reset()
	err := summarize(&text, all, []outcome{{verdict: failed}, {verdict: killed}, {verdict: survived}})
	if err == nil || err.Error() != "of 3 mutations 1 survived, and 1 could not be tried" {
		t.Errorf("error %v", err)
	}
	want := `
  list  killed  SURVIVED  error
  heap       1         0      1
    vm       0         1      0
`
	if text.String() != want {
		t.Errorf("%s\nwant%s", text.String(), want)
	}
}
