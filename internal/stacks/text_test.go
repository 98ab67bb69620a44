package stacks

import (
	"fmt"
	"runtime"
	"testing"
)

//go:noinline
func here() []uintptr {
	pcs := make([]uintptr, 10)
	return pcs[:runtime.Callers(1, pcs)]
}

func TestText(t *testing.T) {
	pcs := here()
	_, file, line, _ := runtime.Caller(0)
	const at = module + "/internal/stacks."
	want := fmt.Sprintf("> %shere\n> \t%s:%d\n> %sTestText\n> \t%s:%d\n", at, file, line-5, at, file, line-1)
	if got := Text(pcs, "> "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := Text(nil, " "); got != " (a stack that was not recorded)\n" {
		t.Errorf("%q", got)
	}
	// Test functions are not own frames, so messages show them.
	if got := Outside(pcs); len(got) != len(pcs) {
		t.Errorf("%d frames of %d", len(got), len(pcs))
	}
}

func TestOwnFunctions(t *testing.T) {
	for name, own := range map[string]bool{
		module + ".New[...]":                  true,
		module + ".(*Heap).Alloc":             true,
		module + "/internal/heap.(*Heap).get": true,
		module + "/arena.(*Arena).Alloc":      false,
		module + "/budget.(*Account).Alloc":   true,
		module + "/budget.(*Budget).Account":  false,
		module + "/pool.New[...]":             true,
		module + "/track_test.TestTag":        false,
		module + "_test.TestHeap":             false,
		module + "er.New":                     false,
		"main.main":                           false,
	} {
		if isOwn(runtime.Frame{Function: name, File: "some.go"}, []string{"pool", "track"}) != own {
			t.Errorf("%s: %t", name, !own)
		}
		if isOwn(runtime.Frame{Function: name, File: "some_test.go"}, []string{"pool", "track"}) {
			t.Errorf("%s in a test is own", name)
		}
	}
}

func TestLibraryFunctions(t *testing.T) {
	for name, want := range map[string]string{
		module + ".New[...]":                          "freehold.New[...]",
		module + "/internal/heap.(*Heap).get":         "heap.(*Heap).get",
		module + "/arena.(*Arena).Alloc":              "arena.(*Arena).Alloc",
		module + "/pool.New[go.shape.struct { a/b }]": "pool.New[go.shape.struct { a/b }]",
		module + "/track/web.Take":                    "web.Take",
		module + "/examples/request-pool.fill":        "",
		module + "/cmd/freehold/lab.run":              "",
		module + "/lab/load.run":                      "",
		module + "er.New":                             "",
		"main.main":                                   "",
	} {
		if isLibrary(runtime.Frame{Function: name, File: "some.go"}) != (want != "") {
			t.Errorf("%s: %t", name, want == "")
		}
		if want != "" && short(name) != want {
			t.Errorf("%s is short for %s", short(name), name)
		}
		if isLibrary(runtime.Frame{Function: name, File: "some_test.go"}) {
			t.Errorf("%s in a test is of the library", name)
		}
	}
	pcs := here()
	if got, through := Caller(pcs); len(got) != len(pcs) || through != "" {
		t.Errorf("%d frames of %d, through %q", len(got), len(pcs), through)
	}
}
