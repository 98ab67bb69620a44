package report

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

type shown struct {
	Result string        `json:"result" show:"result"`
	Took   time.Duration `json:"took_s" show:"took, s"`
	Size   int64         `json:"bytes,omitempty" show:"size" unit:"B" bar:"Memory, MiB/live"`
	Share  float64       `json:"share" show:"share, %" unit:"%" bar:"Shares/of all"`
	Count  int           `json:"count" show:"count" unit:"n"`
	hidden int
}

func TestTables(t *testing.T) {
	all := []any{
		shown{"fine", 1500 * time.Millisecond, 3 << 20, 0.125, 12345, 1}, Missing("refused"),
		&shown{"", 0, -1, math.NaN(), 0, 1},
	}
	g := Columns("of three", []string{"a", "b", "c"}, all)
	want := Grid{[]string{"of three", "a", "b", "c"}, [][]string{
		{"result", "fine", "refused", "-"}, {"took, s", "1.50", "refused", "0"}, {"size", "3.00 MiB", "refused", "-"},
		{"share, %", "12.5", "refused", "-"}, {"count", "12,345", "refused", "0"},
	}}
	if !reflect.DeepEqual(g, want) {
		t.Errorf("columns are %v, want %v", g, want)
	}
	g = Rows("of", []string{"a", "b"}, all[:2])
	want = Grid{[]string{"of", "result", "took, s", "size", "share, %", "count"}, [][]string{
		{"a", "fine", "1.50", "3.00 MiB", "12.5", "12,345"}, {"b", "refused", "refused", "refused", "refused", "refused"},
	}}
	if !reflect.DeepEqual(g, want) {
		t.Errorf("rows are %v, want %v", g, want)
	}
	const text = "who,result,took_s,bytes,share,count\na,fine,1.5,3145728,0.125,12345\nb,,,,,\nc,,0,,,0\n"
	if got := string(CSV([]string{"who"}, [][]string{{"a"}, {"b"}, {"c"}}, all, shown{})); got != text {
		t.Errorf("the CSV is %q, want %q", got, text)
	}
	if got := string(CSV([]string{"who"}, nil, nil, shown{})); got != text[:36] {
		t.Errorf("nothing was measured: %q", got)
	}
	charts := Charts([]Series{{"a", Ours, all[0]}, {"c", Live, shown{Size: 1 << 20, Share: 1}}})
	if len(charts) != 2 || charts[0].Title != "Memory, MiB" || !slices.Equal(charts[0].Groups, []string{"live"}) ||
		charts[0].Bars[0].Values[0] != 3 || charts[0].Bars[1].Values[0] != 1 || charts[1].Bars[0].Values[0] != 12.5 {
		t.Errorf("the charts are %+v", charts)
	}
	if Charts(nil) != nil {
		t.Error("charts of nothing")
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	there, none := filepath.Join(dir, "there"), filepath.Join(dir, "none")
	if err := os.WriteFile(there, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	st := cli.Streams{Out: &out, Err: &errs}
	for _, f := range []Files{{CSV: there, HTML: there}, {CSV: "-", HTML: "-"}, {CSV: there, HTML: there + "/below"}, {CSV: dir}} {
		if _, err := f.Open(st); err == nil {
			t.Errorf("%+v can be written", f)
		}
	}
	f := Files{CSV: there, HTML: none}
	if text, err := f.Open(st); err != nil || text != &out {
		t.Errorf("the report goes to %v, %v", text, err)
	}
	if data, _ := os.ReadFile(there); string(data) != "precious" {
		t.Errorf("the file is %q before the first write", data)
	}
	if _, err := os.Stat(none); err == nil {
		t.Error("a file without contents was left")
	}
	for _, text := range []string{"a long first text", "short"} {
		if err := f.WriteCSV([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if data, _ := os.ReadFile(there); string(data) != "short" {
		t.Errorf("the file holds %q, want the last write alone", data)
	}
	f = Files{CSV: "-"}
	if text, err := f.Open(st); err != nil || text != &errs {
		t.Errorf("the report goes to %v, %v", text, err)
	}
	for _, text := range []string{"head\n", "head\nrow\n", "head\nrow\n"} {
		if err := f.WriteCSV([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if out.String() != "head\nrow\n" {
		t.Errorf("standard output got %q, want each row once", out.String())
	}
	if err := (&Files{}).WriteCSV([]byte("x")); err != nil {
		t.Error(err)
	}
}
