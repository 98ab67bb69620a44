package main

import (
	"bytes"
	"testing"
)

func TestGridPrints(t *testing.T) {
	g := grid{Head: []string{"what", "Go heap", "freehold"}}
	g.add("build", "142 ms", "9 ms")
	g.add("one collection", "-", "0.10 ms")
	var out bytes.Buffer
	g.print(&out)
	const want = "" +
		"   what            Go heap  freehold\n" +
		"  ───────────────────────────────────\n" +
		"   build            142 ms      9 ms\n" +
		"   one collection        -   0.10 ms\n"
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
}
