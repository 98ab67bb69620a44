package bench

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/perf/benchfmt"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	measured "github.com/freehold-go/freehold/lab/bench/sample"
)

// What is written reads back, whatever the figures' size.
func TestBenchstat(t *testing.T) {
	all := loads(fullScale)
	r := &run{loads: all[:1], rows: rows()[:1], cells: map[string]map[string]*cell{}}
	r.cells[all[0].key] = map[string]*cell{"freehold": {samples: []sample{{Sample: measured.Sample{NS: 8.75, Ops: 1000, CPU: 9}}, {Sample: measured.Sample{NS: 3e22, CPU: 1e-7}}}}}
	var out bytes.Buffer
	if err := writeBenchstat(&out, machine{CPU: "a processor", Commit: "1234 with changes"}, r); err != nil {
		t.Fatal(err)
	}
	var found []float64
	for in := benchfmt.NewReader(&out, "here"); in.Scan(); {
		b, ok := in.Result().(*benchfmt.Result)
		if !ok {
			t.Fatal(in.Result())
		}
		if b.Name.String() != "Pair/size=16/goroutines=1/row=freehold" || b.GetConfig("cpu") != "a processor" || b.GetConfig("commit") != "1234 with changes" {
			t.Errorf("%s on %q of %q", b.Name, b.GetConfig("cpu"), b.GetConfig("commit"))
		}
		v, _ := b.Value("sec/op")
		found = append(found, v*1e9, float64(b.Iters))
	}
	if len(found) != 4 || found[0] != 8.75 || found[1] != 1000 || found[2] != 3e22 || found[3] != 1 {
		t.Errorf("read back %v", found)
	}
}

func TestMachineIsKnown(t *testing.T) {
	m := describe(t.Context())
	for name, v := range map[string]string{"CPU": m.CPU, "memory": m.Memory, "kernel": m.Kernel} {
		if v == "" || v == "unknown" {
			t.Errorf("the %s is %q", name, v)
		}
	}
	if uname, err := exec.Command("uname", "-sr").Output(); err == nil && !strings.EqualFold(strings.TrimSpace(string(uname)), m.Kernel) {
		t.Errorf("the kernel is %q, uname says %q", m.Kernel, uname)
	}
}

// What cannot be measured or written is refused before anything is built.
func TestWrongOptionsAreRefusedFirst(t *testing.T) {
	nowhere := filepath.Join(t.TempDir(), "none", "x")
	for want, o := range map[string]Command{
		"--rounds 0, want 1 or more":      {Sample: 1},
		"--rounds -1, want 1 or more":     {Rounds: -1, Sample: 1},
		"--sample 0s, want more than 0":   {Rounds: 1},
		"--sample -1ns, want more than 0": {Rounds: 1, Sample: -1},
		`no row begins with "nothing"`:    {Rounds: 1, Sample: 1, Rows: []string{"nothing"}},
		nowhere:                           {Rounds: 1, Sample: 1, CSV: nowhere},
		"open " + nowhere:                 {Quick: true, Benchstat: nowhere},
	} {
		var errs bytes.Buffer
		if err := o.Run(t.Context(), cli.Streams{Out: io.Discard, Err: &errs}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
		if errs.Len() > 0 {
			t.Errorf("%q was printed", errs.String())
		}
	}
}

func TestExportsOnStandardOutput(t *testing.T) {
	o := Command{Rounds: 1, Sample: 1, CSV: "-", Benchstat: "-"}
	if err := o.Run(t.Context(), cli.Streams{Out: io.Discard, Err: io.Discard}); err == nil || !strings.Contains(err.Error(), "only one") {
		t.Errorf("two files on standard output: %v", err)
	}
	if testing.Short() {
		t.Skip("builds a program")
	}
	needTools(t)
	var out, errs bytes.Buffer
	o = Command{CSV: "-", Quick: true, Loads: []string{"mallocs"}, Rows: []string{"freehold-pointer"}}
	if err := o.Run(t.Context(), cli.Streams{Out: &out, Err: &errs}); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.HasPrefix(text, "load,row,") || strings.Count(text, "\n") != 2 {
		t.Errorf("standard output is %q", text)
	}
	if text := errs.String(); !strings.HasPrefix(text, "bench: building 1 program") || !strings.Contains(text, "freehold beside its peers") {
		t.Errorf("standard error is %q", text)
	}
}

// A run that is stopped keeps its samples, and the sample under way is no failure.
func TestStoppedRunKeepsItsSamples(t *testing.T) {
	needTools(t)
	l := load{key: "numbers/hit", special: true, args: []string{"-load", "numbers-hit", "-entries", "1000"}}
	r := &row{name: "map", keyed: true, tags: "peer_map", only: []string{l.key}}
	b := newBuilder(t.Context(), t.TempDir())
	b.buildAll(t.Context(), []*row{r}, func(*row) {})
	if r.skip != "" {
		t.Fatal(r.skip)
	}
	ctx, stop := context.WithCancel(t.Context())
	plan := &run{rounds: 3, blind: true, loads: []load{l}, rows: []*row{r}}
	plan.ticked = func(load, *row) { stop() }
	if err := plan.do(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the run ends with %v", err)
	}
	plan.step(ctx, l, r, 1)
	if c := plan.cell(l, r); len(c.samples) != 1 || c.failed != "" || plan.took <= 0 {
		t.Errorf("%d samples, failed %q, in %v", len(c.samples), c.failed, plan.took)
	}
}

// SIGTERM ends a run as Ctrl-C does: the folder with the programs goes.
func TestSignalsEndBench(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	needTools(t)
	program := filepath.Join(t.TempDir(), exe("bench"))
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		scratch := t.TempDir()
		cmd := exec.CommandContext(context.Background(), program, "--rows", "freehold-pointer", "--rounds", "100000")
		cmd.Env = append(cmd.Environ(), "TMPDIR="+scratch)
		said, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		text := make([]byte, 6)
		if _, err := said.Read(text); err != nil || string(text) != "bench:" { // it has begun
			t.Fatalf("%q, %v", text, err)
		}
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 1 {
			t.Errorf("%v: %v, want exit code 1", signal, cmd.ProcessState)
		}
		if left, _ := filepath.Glob(filepath.Join(scratch, "freehold-bench-*")); len(left) > 0 {
			t.Errorf("%v: %v was left", signal, left)
		}
	}
}
