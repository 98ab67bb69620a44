package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"
)

func TestGridPrints(t *testing.T) {
	g := Grid{Head: []string{"what", "Go heap", "freehold"}}
	g.Add("build", "142 ms", "9 ms")
	g.Add("one collection", "-", "0.10 ms")
	var out bytes.Buffer
	g.Print(&out)
	const want = "" +
		"   what            Go heap  freehold\n" +
		"  ───────────────────────────────────\n" +
		"   build            142 ms      9 ms\n" +
		"   one collection        -   0.10 ms\n"
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
}

// A table that is too wide wraps its heads, then the names, then continues below.
func TestGridFits(t *testing.T) {
	g := Grid{Head: []string{"2,000,000 nodes of 56 bytes"}}
	name := []string{"one collection, list live, ms"}
	for range 6 {
		g.Head, name = append(g.Head, "resident then"), append(name, "1023 MiB")
	}
	g.Add(name...)
	for width, parts := range map[int]int{200: 1, 114: 1, 100: 1, 80: 1, 77: 2, 60: 2, 40: 3, 30: 6} {
		fitted := g.fit(width)
		if len(fitted) != parts {
			t.Errorf("width %d: %d tables, want %d", width, len(fitted), parts)
		}
		var out bytes.Buffer
		columns := 0
		for _, part := range fitted {
			part.render(&out)
			columns += len(part.Head) - 1
		}
		for line := range strings.Lines(out.String()) {
			if n := text.StringWidth(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("width %d: a line takes %d: %q", width, n, line)
			}
		}
		if columns != 6 || strings.Count(out.String(), "1023 MiB") != 6 {
			t.Errorf("width %d: %d columns, want 6:\n%s", width, columns, out.String())
		}
	}
	if head := g.fit(80)[0].Head[1]; head != "resident\nthen" {
		t.Errorf("a head is wrapped to %q", head)
	}
}
