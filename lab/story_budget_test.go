package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var tinyBox = []string{"--box", "none", "--limits", "128MiB", "--shares", "30", "--rounds", "1", "--hold", "30ms", "--go-live", "2MiB"}

func TestDemoBudget(t *testing.T) {
	dir := t.TempDir()
	table, page, picture := filepath.Join(dir, "b.csv"), filepath.Join(dir, "b.html"), filepath.Join(dir, "b.png")
	code, out, errs := command(t.Context(), append([]string{"report", "budget", "--csv", table, "--html", page, "--png", picture}, tinyBox...)...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	for _, want := range []string{"starting 3 measurements", "128 MiB, 30%", boxDefault, boxLimit, boxBudget, "There was no box", "At 128 MiB and 30% the Go heap has 2.00 MiB live"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	checkPlain(t, out+errs)
	checkHTML(t, page, "A memory limit", "off-heap")
	if b, err := os.ReadFile(picture); err != nil || !strings.HasPrefix(string(b), "\x89PNG") {
		t.Errorf("the picture: %.8q, %v", b, err)
	}
	text, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if err != nil || len(rows) != 4 {
		t.Fatalf("%d rows, %v:\n%s", len(rows), err, text)
	}
	for i, mode := range boxModes {
		row := rows[i+1]
		if row[0] != "134217728" || row[1] != "30" || row[2] != mode || row[3] != "1" || row[9] != "1.000" {
			t.Errorf("%v", row)
		}
		if !raceBuild && (row[4] == boxKilled || row[4] == boxStruck) {
			t.Errorf("nothing kills: %v", row)
		}
	}
}

func TestBudgetFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--limits 1MiB":                  "--limits 1.00 MiB: at least 64 MiB are needed",
		"--limits 1000TiB":               "--limits 1000 TiB: more than three quarters of the",
		"--limits much":                  `"much" is no size`,
		"--shares 0":                     "--shares 0: a share is 1 to 99 percent",
		"--shares 50,100":                "--shares 100: a share is 1 to 99 percent",
		"--runs 0":                       "--runs 0: at least one is needed",
		"--runs 1000000000":              "--runs 1000000000: more than 10000",
		"--limits 1GiB --go-live 1GiB":   "--go-live 1.00 GiB: it must be below the limit of 1.00 GiB",
		"--with magic":                   `--with: nothing is called "magic"; there are: default, limit, budget`,
		"--box paper":                    `--box must be one of "cgroup","none"`,
		"--with budget --with-something": "unknown flag",
	} {
		code, _, errs := command(t.Context(), append([]string{"report", "budget"}, strings.Fields(args)...)...)
		if code != cli.Misused || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, %q, want %q", args, code, errs, want)
		}
	}
	if code, _, errs := command(t.Context(), "report", "list", "--csv", "x"); code != cli.Misused || !strings.Contains(errs, "--csv is for the story budget") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

func TestBoxRuns(t *testing.T) {
	s := boxSettings{Limits: []int64{256 << 20, 4 << 30}, Shares: []int{10, 90}, Modes: boxModes, Runs: 2}
	runs := s.runs()
	if len(runs) != 24 {
		t.Errorf("%d runs", len(runs))
	}
	for _, r := range runs {
		again, err := boxRunNamed(r.name())
		if err != nil || again != r {
			t.Errorf("%+v is %+v, %v", r, again, err)
		}
		if l := s.load(r); l.OffHeap > r.Limit || l.OffHeap+2*l.Live > r.Limit || l.Live > 64<<20 || l.Live <= 0 {
			t.Errorf("%+v: %+v", r, l)
		}
	}
	for _, name := range []string{"", "1,2,budget", "x,2,budget,1", "1,x,budget,1", "1,2,budget,x"} {
		if _, err := boxRunNamed(name); err == nil {
			t.Errorf("%q names a run", name)
		}
	}
}

// The charts of a limit and share have the same axes, and lines for what there is.
func TestBoxCharts(t *testing.T) {
	result := func(mode string, share, run int, seconds float64) boxResult {
		return boxResult{boxRun{1 << 30, share, mode, run}, boxOutcome{Result: boxFinished, Samples: []boxSample{{Seconds: 0.1, Limit: 7}, {Seconds: seconds, Limit: 8}}}}
	}
	charts := boxCharts([]boxResult{
		result(boxDefault, 10, 1, 2), result(boxLimit, 10, 1, 1), result(boxBudget, 10, 1, 3), result(boxBudget, 10, 2, 50),
		result(boxDefault, 20, 1, 5), {run: boxRun{1 << 30, 20, boxLimit, 1}},
	})
	if len(charts) != 4 {
		t.Fatalf("%d charts", len(charts))
	}
	for i, want := range []struct {
		seconds float64
		lines   int
	}{{3, 4}, {3, 5}, {3, 5}, {5, 4}} {
		c := charts[i]
		if c.XMax != want.seconds || c.YMax != 1.1*(1<<30) || len(c.Lines) != want.lines {
			t.Errorf("%s: up to %v s and %v bytes, %d lines; want %+v", c.Title, c.XMax, c.YMax, len(c.Lines), want)
		}
		svg, err := c.svg()
		if err != nil {
			t.Fatal(err)
		}
		if last := fmt.Sprintf(">%v<", want.seconds); !strings.Contains(string(svg), last) || !strings.Contains(string(svg), "container&#39;s limit") {
			t.Errorf("%s: no tick %s in %s", c.Title, last, svg)
		}
	}
}

func TestBoxFinding(t *testing.T) {
	result := func(mode string, share int, what string, seconds, collector float64) boxResult {
		return boxResult{boxRun{1000, share, mode, 1}, boxOutcome{Result: what, Peak: 500, Seconds: seconds, Samples: []boxSample{{Collector: collector}}}}
	}
	b1, b2, b3 := result(boxBudget, 1, boxFinished, 4, 0.1), result(boxBudget, 2, boxFinished, 6, 0.3), result(boxBudget, 3, boxFinished, 60, 0.9)
	for _, tt := range []struct {
		name    string
		results []boxResult
		want    string
	}{
		{"none", nil, ""},
		{"a budget alone", []boxResult{b1, b2}, "With a budget, 2 of 2 runs finished; the peak was 50.0% of the limit. With a budget a run took 4.00 to 6.00 s, and the collector 10.0 to 30.0% of the processors' time. "},
		{"beside what finished too", []boxResult{
			result(boxDefault, 1, boxFinished, 2, 0.2), result(boxLimit, 1, boxKilled, 1, 0), b1,
			result(boxDefault, 2, boxFinished, 2, 0.2), result(boxLimit, 2, boxFinished, 12, 0), b2,
			result(boxDefault, 3, boxKilled, 1, 0), result(boxLimit, 3, boxGaveUp, 1, 0), b3,
		}, "With Go's defaults, 2 of 3 runs finished; the peak was 50.0% of the limit. With GOMEMLIMIT, 1 of 3 runs finished; the peak was 50.0% of the limit. With a budget, 3 of 3 runs finished; the peak was 50.0% of the limit. " +
			"Where both finished, a budget took 2.00 to 3.00 times as long as Go's defaults; the collector took 10.0 to 30.0% of the processors' time with it, and 20.0% with Go's defaults. " +
			"Where both finished, a budget took 0.50 times as long as GOMEMLIMIT; the collector took 30.0% of the processors' time with it, and 0.0% with GOMEMLIMIT. "},
		{"no budget", []boxResult{result(boxDefault, 1, boxFinished, 2, 0.2)}, "With Go's defaults, 1 of 1 run finished; the peak was 50.0% of the limit. "},
	} {
		if got := boxFinding(tt.results); got != tt.want {
			t.Errorf("%s:\n%q, want\n%q", tt.name, got, tt.want)
		}
	}
}

// A load has what limits its memory from its mode alone.
func TestBoxEnvironment(t *testing.T) {
	environ := []string{"HOME=/root", "GOGC=50", "GOMEMLIMIT=1", "GODEBUG=x", "FREEHOLD_MEMORY_LIMIT=7", "FREEHOLD_BOX=/old"}
	for _, tt := range []struct {
		mode, dir string
		want      []string
	}{
		{boxDefault, "", []string{"HOME=/root"}},
		{boxDefault, "/box", []string{"HOME=/root", "FREEHOLD_BOX=/box"}},
		{boxLimit, "", []string{"HOME=/root", "GOGC=off", "GOMEMLIMIT=900"}},
		{boxBudget, "/box", []string{"HOME=/root", "FREEHOLD_BOX=/box"}}, // where the budget finds it
		{boxBudget, "", []string{"HOME=/root", "FREEHOLD_MEMORY_LIMIT=1000"}},
	} {
		if got := boxEnvironment(environ, tt.mode, 1000, tt.dir); !slices.Equal(got, tt.want) {
			t.Errorf("%s %s: %q, want %q", tt.mode, tt.mode, got, tt.want)
		}
	}
}

func TestResidentPeak(t *testing.T) {
	var p residentPeak
	for _, tt := range []struct {
		status string
		want   int64 // so far
	}{
		{"", 0},
		{"VmHWM:\t 900 kB\nRssAnon:\t 500 kB\nRssFile:\t 300 kB\nRssShmem:\t 10 kB\n", 600 << 10},
		{"VmHWM:\t 900 kB\nRssAnon:\t 590 kB\nRssFile:\t 300 kB\nRssShmem:\t 20 kB\n", 610 << 10},
		{"VmHWM:\t 905 kB\nRssAnon:\t 500 kB\nRssFile:\t 100 kB\n", 610 << 10}, // pages of files went
		{"VmHWM:\t 920 kB\nRssAnon:\t 500 kB\nRssFile:\t 100 kB\n", 620 << 10},
	} {
		if p.look(tt.status); p.bytes() != tt.want {
			t.Errorf("%q: %d, want %d", tt.status, p.bytes(), tt.want)
		}
	}
}

// groups writes files of control groups.
func groups(t *testing.T, files map[string]string) (root string) {
	root = t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// The smallest live heap is one node for each processor.
func TestLoadWithHardlyALiveHeap(t *testing.T) {
	w := &boxWork{load: boxLoad{Live: 1}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan bool)
	go func() { w.churn(ctx); close(ended) }()
	for w.nodes.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	stop()
	<-ended
}

// Files that the kernel would make are not there, so that each box is refused, and leaves
// nothing behind.
func TestBoxRefused(t *testing.T) {
	for _, tt := range []struct {
		list string
		want string
	}{
		{"0::/a/b\n", filepath.Join("a", "lab-box-")}, // a is the nearest that controls memory
		{"4:memory:/a/b\n0::/\n", filepath.Join("memory", "a", "b", "lab-box-")},
		{"4:cpu:/a\n", "no control group can be made"},
		{"nonsense\n", "no control group can be made"},
	} {
		root := groups(t, map[string]string{
			"list": tt.list, "cgroup.subtree_control": "cpu memory", "a/cgroup.subtree_control": "memory",
			"a/b/x": "", "memory/a/b/x": "",
		})
		b, err := newBoxIn(filepath.Join(root, "list"), root, 1<<20)
		if b != nil || err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "no control group can be made") {
			t.Errorf("%q: %v", tt.list, err)
		}
		filepath.WalkDir(root, func(p string, _ os.DirEntry, _ error) error {
			if strings.Contains(p, "freehold-box") {
				t.Errorf("%q: %s is left", tt.list, p)
			}
			return nil
		})
	}
	if _, err := newBoxIn(filepath.Join(t.TempDir(), "none"), "/", 1); err == nil {
		t.Error("a system without control groups")
	}
}

// What others have left neither keeps a box from being made nor stays, if it can be told that
// nobody uses it.
func TestLeftBoxes(t *testing.T) {
	const gone = 1 << 30 // no process has such an id
	own := boxPrefix + strconv.Itoa(os.Getpid())
	root := groups(t, map[string]string{
		own + "/busy": "", own + "-1/busy": "",
		fmt.Sprintf("%s%d-3/busy", boxPrefix, gone): "",
		boxPrefix + "mine/x":                        "", "other/x": "",
	})
	for _, dir := range []string{strconv.Itoa(gone), fmt.Sprintf("%d-2", gone), strconv.Itoa(os.Getppid()), "0", "-1"} {
		if err := os.Mkdir(filepath.Join(root, boxPrefix+dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	_, err := createBox(root, boxV2, 1<<20)
	if err == nil || !strings.Contains(err.Error(), own+"-") || !strings.Contains(err.Error(), boxV2.limit) {
		t.Errorf("%v, want that a group of its own name has no limit", err)
	}
	for name, want := range map[string]bool{
		own: true, own + "-1": true, // busy
		fmt.Sprintf("%s%d-3", boxPrefix, gone): true, // busy
		fmt.Sprintf("%s%d", boxPrefix, gone):   false, fmt.Sprintf("%s%d-2", boxPrefix, gone): false,
		fmt.Sprintf("%s%d", boxPrefix, os.Getppid()): true,
		boxPrefix + "0": true, boxPrefix + "-1": true, boxPrefix + "mine": true, "other": true,
	} {
		if _, err := os.Stat(filepath.Join(root, name)); os.IsNotExist(err) == want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a box of either version tells and takes.
func TestBoxFiles(t *testing.T) {
	for _, tt := range []struct {
		files              boxFiles
		version, swap, all string
	}{
		{boxV2, "v2", "0", "low 0\nmax 7\noom 2\noom_kill 3\n"},
		{boxV1, "v1", "4096", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"},
	} {
		root := groups(t, map[string]string{
			"x/" + tt.files.limit: "max", "x/" + tt.files.swap: "max", "x/" + tt.files.kills: tt.all,
		})
		b := &box{filepath.Join(root, "x"), tt.files}
		if err := b.limit(4096); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(filepath.Join(b.dir, tt.files.limit)); string(got) != "4096" {
			t.Errorf("%s: limit %q", tt.version, got)
		}
		if got, _ := os.ReadFile(filepath.Join(b.dir, tt.files.swap)); string(got) != tt.swap {
			t.Errorf("%s: swap %q", tt.version, got)
		}
		if b.kills() != 3 || b.killer() != boxKilled {
			t.Errorf("%s: %d kills, %s", tt.version, b.kills(), b.killer())
		}
		if err := os.WriteFile(filepath.Join(b.dir, tt.files.kills), []byte("oom_kill 0\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if b.killer() != boxStruck {
			t.Errorf("%s: %s without a kill of the box", tt.version, b.killer())
		}
	}
}

func TestKillWithoutABox(t *testing.T) {
	if got := (*box)(nil).killer(); got != boxStruck {
		t.Error(got)
	}
}
