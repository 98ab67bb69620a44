package main

import (
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
			t.Errorf("%s: %v", m.name, err)
		} else if _, err := m.apply(string(source)); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}

func TestReadLists(t *testing.T) {
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
		{name: "noun: one", file: "a/b.go", test: "-short ./a", old: "\tx := 1\n\ty := 2", new: "\tx := 3"},
		{name: "noun: two", file: "c.s", after: "TEXT ·f", test: "GOGC=1 ./d ./e -run X", old: "ADDQ"},
	}
	if err != nil || len(all) != len(want) || all[0] != want[0] || all[1] != want[1] {
		t.Errorf("%+v, %v, want %+v", all, err, want)
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
		{mutation{file: "f", after: "func b", old: "a()"}, "!f has the old text 0 times, not once"},
		{mutation{file: "f", after: "func", old: "y()"}, `!f has "func" 2 times, not once`},
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
	"go.mod": {Data: []byte("module toy\n\ngo 1.26\n")},
	"toy.go": {Data: []byte(`package toy

import "syscall"

var _ = syscall.Exit

func One() int { return 1 }
func Two() int { return 2 }
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
	const good = ". -run One"
	var all []mutation
	var wants []string
	for _, tt := range []struct{ test, old, new, want string }{
		{good, "return 1", "return 9", "killed    %: TestOne\n"},
		{good, "return 1", "panic(7)", "killed    %: TestOne\n"},
		{good, "return 1", "syscall.Exit(7); return 1", "killed    %: TestOne, which crashed\n"},
		{good, "return 1", "return 0", "killed    %: TestOne, which timed out\n"},
		{good, "return 2", "return 9", "SURVIVED  %: go test . -run One\n"},
		{good, "return 1", "return x", "error     %: it does not build: # toy"},
		{good, "return 5", "return 6", "error     %: toy.go has the old text 0 times, not once\n"},
		{".", "return 1", "return 9", "error     %: go test . fails without the mutation: TestRefuses\n"},
		{". -run Nobody", "return 1", "return 9", "error     %: go test . -run Nobody: no test runs\n"},
		{"./nowhere", "return 1", "return 9", "error     %: it does not build: # ./nowhere"},
	} {
		name := tt.test + ": " + tt.old + " to " + tt.new
		all = append(all, mutation{name: name, file: "toy.go", test: tt.test, old: tt.old, new: tt.new})
		wants = append(wants, strings.Replace(tt.want, "%", name, 1))
	}
	var text strings.Builder
	err := tryAll(&text, dir, all, 2, 3*time.Second)
	if err == nil || err.Error() != "of 10 mutations 1 survived, and 5 could not be tried" {
		t.Errorf("error %v", err)
	}
	for _, want := range wants {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%s\nwant %s", text.String(), want)
		}
	}
}
