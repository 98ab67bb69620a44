package report

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
)

type shown struct {
	Result string        `json:"result" show:"result"`
	Took   time.Duration `json:"took_s" show:"took, s"`
	Size   int64         `json:"bytes,omitempty" show:"size" unit:"B"`
	Share  float64       `json:"share" show:"share, %" unit:"%"`
	Count  int           `json:"count" show:"count" unit:"n"`
	hidden int
}

var all = []shown{{"fine", 1500 * time.Millisecond, 3 << 20, 0.125, 12345, 1}, {"", 0, -1, -1, 0, 1}}

func TestTables(t *testing.T) {
	texts := func(g Grid) (rows [][]string) {
		rows = append(rows, g.Head)
		for _, r := range g.Rows {
			var row []string
			for _, c := range r {
				row = append(row, c.Text)
			}
			rows = append(rows, row)
		}
		return rows
	}
	columns := Columns("of three", shown{}, []Column{{"a", "go", all[0]}, {"b", "", "refused"}, {"c", "", &all[1]}})
	if got, want := texts(columns), [][]string{
		{"of three", "a", "b", "c"}, {"result", "fine", "refused", "-"}, {"took, s", "1.50", "refused", "0"}, {"size", "3.00 MiB", "refused", "-"},
		{"share, %", "12.5", "refused", "-"}, {"count", "12,345", "refused", "0"},
	}; !reflect.DeepEqual(got, want) {
		t.Errorf("columns are %v, want %v", got, want)
	}
	if got, want := texts(Rows("of", []string{"a", "b"}, all)), [][]string{
		{"of", "result", "took, s", "size", "share, %", "count"}, {"a", "fine", "1.50", "3.00 MiB", "12.5", "12,345"}, {"b", "-", "0", "-", "-", "0"},
	}; !reflect.DeepEqual(got, want) {
		t.Errorf("rows are %v, want %v", got, want)
	}
	for v, want := range map[any][]string{
		all[0]: {"fine", "1.5", "3145728", "0.125", "12345"}, all[1]: {"", "0", "", "", "0"}, "refused": {"", "", "", "", ""},
	} {
		if got := Values(v, shown{}); !slices.Equal(got, want) {
			t.Errorf("the CSV of %v is %q, want %q", v, got, want)
		}
	}
	if got := Names(shown{}); !slices.Equal(got, []string{"result", "took_s", "bytes", "share", "count"}) {
		t.Errorf("the head of the CSV is %q", got)
	}
}

// A table that is too wide wraps its heads, and then the names.
func TestGridPrints(t *testing.T) {
	g := Grid{Head: []string{"2,000,000 nodes of 56 bytes", "Go heap", "resident then"}}
	g.Add("build", "142 ms", "9 ms")
	g.Add("one collection, list live, all processors, milliseconds in all", "-", "0.10 ms")
	var out bytes.Buffer
	g.Print(&out)
	const want = "" +
		"                                                               Go      resident\n" +
		"   2,000,000 nodes of 56 bytes                                   heap      then\n" +
		"  ──────────────────────────────────────────────────────────────────────────────\n" +
		"   build                                                       142 ms      9 ms\n" +
		"   one collection, list live, all processors, milliseconds in\n" +
		"   all                                                              -   0.10 ms\n"
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
	// Columns that have no room are below.
	for range 9 {
		g.Head, g.Rows[0], g.Rows[1] = append(g.Head, "more"), append(g.Rows[0], Cell{Text: "12345678"}), append(g.Rows[1], Cell{Text: "1\n2"})
	}
	out.Reset()
	g.Print(&out)
	if n, tables := strings.Count(out.String(), "12345678"), strings.Count(out.String(), "2,000,000"); n != 9 || tables != 2 {
		t.Errorf("%d of 9 columns in %d tables:\n%s", n, tables, out.String())
	}
	for line := range strings.Lines(out.String()) {
		if n := text.StringWidth(strings.TrimSuffix(line, "\n")); n > usualWidth {
			t.Errorf("a line takes %d: %q", n, line)
		}
	}
}

// Short names leave their room to columns, and others keep some beside a wide one.
func TestGridNames(t *testing.T) {
	short, wide := Grid{Head: []string{"name"}}, Grid{Head: []string{"name", strings.Repeat("w", 70)}}
	short.Add("a")
	for range 7 {
		short.Head, short.Rows[0] = append(short.Head, "12345678"), append(short.Rows[0], Cell{Text: "1"})
	}
	wide.Add("one collection", "1")
	var out bytes.Buffer
	short.Print(&out)
	wide.Print(&out)
	if strings.Count(out.String(), "name") != 2 || !strings.Contains(out.String(), "one collection") {
		t.Errorf("printed\n%s", out.String())
	}
}

func TestPage(t *testing.T) {
	p := Page{Title: "a <title>", Sections: []Section{{
		Charts: []Chart{
			{Title: "nothing", Lines: []Line{{Name: "empty"}}}, {Title: "a moment", Lines: []Line{{Name: "start", Points: []Point{{}}}}},
			{Title: "freehold: memory", Lines: []Line{{Name: "live", Color: "live", Fill: true, Points: []Point{{0, 1 << 30}, {9, 3 << 30}}}}},
		},
		Grids: []Grid{Columns("bars", shown{}, []Column{{"a", "go", all[0]}, {"b", "freehold", shown{Count: 24690}}})},
	}}}
	var out bytes.Buffer
	if err := p.Write(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"a &lt;title&gt;", `aria-label="freehold: memory"`, `class="live fill" d="M0.0 146.7 640.0 0.0 V220 H0.0 Z"`,
		">1.00 GiB</text>", ">2</text>", `<i class="go" style="--share: 50"></i><span>12,345</span>`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is missing in\n%s", want, out.String())
		}
	}
	for _, bad := range []string{"NaN", "Inf", "ZgotmplZ"} {
		if strings.Contains(out.String(), bad) {
			t.Errorf("the page has %s", bad)
		}
	}
}

// The legend has each colour once, in order, with the shorter name of two that share it.
func TestLegend(t *testing.T) {
	p := Page{Sections: []Section{{
		Grids:  []Grid{{Head: []string{"Go heap", "no bars", "freehold"}, Colors: []string{"go", "", "freehold"}}},
		Charts: []Chart{{Lines: []Line{{Name: "Go heap, limit", Color: "go"}, {Name: "Go heap", Color: "go"}, {Name: "freehold", Color: "arena"}}}},
	}}}
	if got, want := p.Legend(), []Entry{{"go", "Go heap"}, {"freehold", "freehold"}, {"arena", "freehold"}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestTicks(t *testing.T) {
	labels := func(ticks []tick) (all []string) {
		for _, tick := range ticks {
			all = append(all, tick.Label)
		}
		return all
	}
	for most, want := range map[float64]string{0: "0 0.0002 0.0004 0.0006 0.0008 0.001", 12.7: "0 2 4 6 8 10 12", 0.12: "0 0.02 0.04 0.06 0.08 0.1 0.12", 0.3: "0 0.05 0.1 0.15 0.2 0.25 0.3", 2200: "0 500 1000 1500 2000"} {
		if got := strings.Join(labels(Chart{XMax: most}.Seconds()), " "); got != want {
			t.Errorf("%v seconds have %s, want %s", most, got, want)
		}
	}
	for most, want := range map[float64]string{0: "0 B|1 B", 5 << 30: "0 B|1.00 GiB|2.00 GiB|3.00 GiB|4.00 GiB|5.00 GiB", 600 << 20: "0 B|128 MiB|256 MiB|384 MiB|512 MiB"} {
		if got := strings.Join(labels(Chart{YMax: most}.Bytes()), "|"); got != want {
			t.Errorf("%v bytes have %s, want %s", most, got, want)
		}
	}
}

func TestFigure(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.0126: "0.013", 1.234: "1.23", 56.78: "56.8", 123.4: "123", 2103.4: "2,103"} {
		if got := Figure(v); got != want {
			t.Errorf("Figure(%v) = %q, want %q", v, got, want)
		}
	}
	if got := (figure{unit: "x", value: 1.2345}).cell(); got != "1.234" {
		t.Errorf("a ratio of 1.2345 is %s", got)
	}
}

func TestJoined(t *testing.T) {
	words := []string{"a", "b", "c"}
	for n, want := range []string{"", "a", "a and b", "a, b and c"} {
		if got := Joined(words[:n]); got != want {
			t.Errorf("%d words are %q, want %q", n, got, want)
		}
	}
}
