package bench

import (
	"bytes"
	"encoding/csv"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// TestSameLoadsInCAndGo: with a fixed number of operations every row's program
// draws the same random numbers, so it reports the same sum.
func TestSameLoadsInCAndGo(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	needTools(t)
	b := newBuilder(t.Context(), t.TempDir())
	all, err := selectRows(rows(), []string{"go", "modernc-mutex", "loop-go", "c-libc", "loop-c"})
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(r *row) bool { return r.sorter != "" || r.keyed })
	b.buildAll(t.Context(), all, func(*row) {})
	byName := map[string]*row{}
	for _, r := range all {
		if r.skip != "" {
			t.Logf("%s: %s", r.name, r.skip)
			continue
		}
		byName[r.name] = r
	}
	for _, args := range []string{
		"-load pair -min 64 -ops 1000",
		"-load zeroed -min 64 -ops 1000",
		"-load mixed -min 16 -max 1039 -ops 50000",
		"-load mixed -min 16 -max 4096 -threads 2 -ops 50000",
		"-load scatter -min 64 -ops 3",
		"-load scatter -min 64 -threads 2 -ops 3",
		"-load handover -min 64 -ops 10000",
		"-load handover -min 16 -max 1039 -read 1 -ops 10000",
		"-load live -min 16 -max 1024 -slots 10000",
		"-load churn -min 16 -max 1024 -slots 10000",
	} {
		sums := map[uint64][]string{}
		for name, r := range byName {
			if r.loop && strings.Contains(args, "live") || r.loop && strings.Contains(args, "churn") {
				continue // one block for all sizes: its sum is right, its memory is not
			}
			s, err := take(t.Context(), r, load{args: strings.Fields(args)})
			if err != nil {
				t.Errorf("%s: %s: %v", name, args, err)
				continue
			}
			sums[s.Sum] = append(sums[s.Sum], name)
		}
		if len(sums) > 1 {
			t.Errorf("%s: the sums differ: %v", args, sums)
		}
		if sums[0] != nil {
			t.Errorf("%s: the sum is 0", args)
		}
	}
}

// TestSameSpecialLoads: what only some rows run, they run alike.
func TestSameSpecialLoads(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	needTools(t)
	b := newBuilder(t.Context(), t.TempDir())
	special := slices.DeleteFunc(loads(quickScale), func(l load) bool { return !l.special || l.of != "" })
	all := slices.DeleteFunc(rows(), func(r *row) bool {
		return !slices.ContainsFunc(special, func(l load) bool { return r.runs(l) })
	})
	b.buildAll(t.Context(), all, func(*row) {})
	for _, l := range special {
		ops := "50000" // past several resets
		if l.key == "list" || l.key == "reset" || strings.HasPrefix(l.key, "onebyte") {
			ops = "3"
		}
		counted := slices.ContainsFunc(all, func(r *row) bool { return r.sorter == "" && !r.keyed && r.runs(l) })
		if counted { // other programs do the whole load
			l.args = append(l.args, "-ops", ops)
		}
		sums := map[uint64][]string{}
		for _, r := range all {
			if r.skip != "" {
				t.Logf("%s: %s", r.name, r.skip)
			}
			if !r.runs(l) {
				continue
			}
			s, err := take(t.Context(), r, l)
			if err != nil {
				t.Errorf("%s: %s: %v", r.name, l.key, err)
				continue
			}
			sums[s.Sum] = append(sums[s.Sum], r.name)
			if strings.HasPrefix(l.key, "lru") && (s.Requested < 40<<20 || s.Requested > 64<<20) {
				t.Errorf("%s: %s: %d bytes are live in a cache at its limit of 64 MiB", r.name, l.key, s.Requested)
			}
		}
		if len(sums) != 1 || sums[0] != nil {
			t.Errorf("%s: the sums differ or are 0: %v", l.key, sums)
		}
	}
}

// TestQuick runs everything once, as CI does, and reads back what it wrote.
func TestQuick(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs and runs all of them")
	}
	needTools(t)
	dir := t.TempDir()
	o := Command{
		Quick: true, Noise: 3,
		CSV:       filepath.Join(dir, "csv"),
		Benchstat: filepath.Join(dir, "bench"),
	}
	var out, errs bytes.Buffer
	if err := o.Run(t.Context(), cli.Streams{Out: &out, Err: &errs}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"freehold beside its peers", "smoke test", "calloc + touch + free", "resident bytes per requested byte"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report has no %q", want)
		}
	}
	if strings.Contains(out.String(), "FAILED") {
		t.Errorf("a row failed:\n%s", out.String())
	}
	bench, err := os.Open(o.Benchstat)
	if err != nil {
		t.Fatal(err)
	}
	defer bench.Close()
	results := 0
	for in := benchfmt.NewReader(bench, o.Benchstat); in.Scan(); results++ {
		if _, ok := in.Result().(*benchfmt.Result); !ok {
			t.Errorf("not Go's benchmark format: %v", in.Result())
		}
	}
	if results < 100 {
		t.Errorf("only %d benchmark lines", results)
	}

	f, err := os.Open(o.CSV)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range records[1:] {
		if record[1] == "freehold" && record[0] != "mallocs" && record[4] == "0" {
			t.Errorf("freehold has no figure on %s", record[0])
		}
		if _, err := strconv.ParseFloat(record[4], 64); err != nil {
			t.Errorf("%v: %v", record, err)
		}
	}
}

func TestSelect(t *testing.T) {
	all := loads(fullScale)
	if got, _ := selectLoads(all, nil, false); slices.ContainsFunc(got, func(l load) bool { return l.huge }) {
		t.Error("the huge load runs without being asked for")
	}
	for _, names := range [][]string{nil, {"huge"}} {
		got, err := selectLoads(all, names, names == nil)
		if err != nil || !slices.ContainsFunc(got, func(l load) bool { return l.huge }) {
			t.Errorf("the huge load does not run for %v", names)
		}
	}
	if got, _ := selectLoads(all, []string{"pair/64", "churn"}, false); len(got) != 2 {
		t.Errorf("pair/64 and churn select %d loads", len(got))
	}
	if _, err := selectLoads(all, []string{"pear"}, false); err == nil {
		t.Error("a load that is not there was accepted")
	}
	if _, err := selectRows(rows(), []string{"freehole"}); err == nil {
		t.Error("a row that is not there was accepted")
	}
	keys := map[string]bool{}
	for _, l := range all {
		if keys[l.key] {
			t.Errorf("two loads are called %s", l.key)
		}
		keys[l.key] = true
	}
}

// TestSkipsAreSaid: a row without its library keeps the reason.
func TestSkipsAreSaid(t *testing.T) {
	needTools(t)
	b := newBuilder(t.Context(), t.TempDir())
	b.cgo = false
	for _, r := range []*row{
		{name: "a", native: true, preload: "libnosuchmalloc.so.9"},
		{name: "b", cgo: true, tags: "peer_cgo"},
		{name: "c", cgo: true, needs: []string{"/no/such/file"}},
	} {
		b.build(t.Context(), r)
		if r.skip == "" {
			t.Errorf("row %s was not skipped", r.name)
		}
	}
}

func needTools(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command")
	}
}
