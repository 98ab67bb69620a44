package bench

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/perf/benchfmt"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// TestPrograms builds all programs, as bench does, and runs each of their benchmarks.
func TestPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs and runs all of them")
	}
	needTools(t)
	all := programs("")
	newBuilder(t.Context(), t.TempDir()).buildAll(t.Context(), all, func(*program) {})
	for _, p := range all {
		if p.skip != "" {
			t.Logf("%s: %s", p.name, p.skip)
		}
	}
	benchmarks, err := selection{full: true}.benchmarksOf(all)
	if err != nil {
		t.Fatal(err)
	}
	quick := scale{"quick", 1, 4 * time.Millisecond}
	t.Run("sums", func(t *testing.T) { checkSums(t, quick, benchmarks) })
	t.Run("run", func(t *testing.T) { checkRun(t, &run{scale: quick, benchmarks: benchmarks, blind: true}, all) })
}

// checkSums: with a fixed number of operations every program draws the same random numbers, so it
// reports the same sum. A loop that the compiler left out would have none. Caches may drop entries,
// so their sums differ.
func checkSums(t *testing.T, s scale, all []*benchmark) {
	for _, b := range all {
		operations := 2000
		switch {
		case b.longer == 0:
			operations = 1
		case b.group.name == "Reset":
			operations = 3
		case strings.HasPrefix(b.name, "Bump"):
			operations = 50_000 // past several resets
		}
		sums := map[float64][]string{}
		for _, p := range b.peers {
			r, _, err := take(t.Context(), p, s.argsOf(b, p, operations, 1))
			if errors.Is(err, errSkip) {
				continue
			}
			if err != nil {
				t.Errorf("%s: %s: %v", p.name, b.name, err)
				continue
			}
			sum, _ := sample{Result: r}.value("sum")
			sums[sum] = append(sums[sum], p.name)
		}
		if b.group.name != "Caches" && (len(sums) != 1 || sums[0] != nil) {
			t.Errorf("%s: the sums differ or are 0: %v", b.name, sums)
		}
	}
}

// checkRun takes a sample of everything, and reads its output back.
func checkRun(t *testing.T, r *run, programs []*program) {
	if err := r.do(t.Context()); err != nil {
		t.Fatal(err)
	}
	var report, text bytes.Buffer
	writeReport(&report, machine{}, programs, r, true, nil)
	for _, want := range []string{"smoke test", "calloc, touch the first byte, free. ns/op", "resident/requested", "peak/allowed"} {
		if !strings.Contains(report.String(), want) {
			t.Errorf("the report has no %q", want)
		}
	}
	if strings.Contains(report.String(), "FAILED") {
		t.Errorf("a program failed:\n%s", report.String())
	}
	if err := writeText(&text, machine{}, r); err != nil {
		t.Fatal(err)
	}
	results := 0
	for in := benchfmt.NewReader(&text, ""); in.Scan(); results++ {
		if _, ok := in.Result().(*benchfmt.Result); !ok {
			t.Errorf("not Go's benchmark format: %v", in.Result())
		}
	}
	if results < 500 {
		t.Errorf("%d benchmark lines", results)
	}
}

// A function that is not inlined into the loops of alloc/ would be measured with each peer. If it
// is everywhere, the program does not have it.
func TestLoopsAreInlined(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	needTools(t)
	b := builder{dir: t.TempDir()}
	if err := b.goBuild(t.Context(), &program{}, "test", "-ldflags=", "-c", "-o", b.file("it"), module+"/lab/bench/alloc"); err != nil {
		t.Fatal(err)
	}
	symbols, err := exec.Command("go", "tool", "nm", b.file("it")).Output()
	if err != nil || !bytes.Contains(symbols, []byte("bench/alloc.pair")) {
		t.Fatalf("no symbols: %v", err)
	}
	for _, name := range []string{"free", "touch"} {
		if bytes.Contains(symbols, []byte("bench/alloc."+name+"\n")) {
			t.Errorf("a loop calls %s", name)
		}
	}
}

// A program that cannot be built keeps the reason.
func TestSkipsAreSaid(t *testing.T) {
	needTools(t)
	b := newBuilder(t.Context(), t.TempDir())
	b.cgo = false
	all := []*program{
		{name: "a", native: true, preload: "libnosuchmalloc.so.9", expect: "nosuch"},
		{name: "b", cgo: true, tags: "peer_cgo"},
		{name: "c", cgo: true, needs: "/no/such/file"},
	}
	b.buildAll(t.Context(), all, func(*program) {})
	for _, p := range all {
		if p.skip == "" {
			t.Errorf("program %s was not skipped", p.name)
		}
	}
}

func needTools(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command")
	}
}

// scripted returns a peer whose program is a shell script.
func scripted(t *testing.T, script string) peer {
	file := t.TempDir() + "/script"
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := exec.Command(file).Run(); errors.Is(err, exec.ErrNotFound) {
		t.Skip("needs a shell")
	}
	return peer{"it", &program{path: file}}
}

func TestTake(t *testing.T) {
	said := "goos: linux\ncpu: a processor\nBenchmarkA/size=1-2/peer=it-2 \t 10\t 2e7 ns/op\t 3.5 resident/requested\nPASS\n"
	r, _, err := take(t.Context(), scripted(t, "cat <<E\n"+said+"E\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	ns, _ := sample{Result: r}.value("ns/op")
	resident, _ := sample{Result: r}.value("resident/requested")
	if r.Iters != 10 || ns != 2e7 || resident != 3.5 || r.GetConfig("cpu") != "a processor" {
		t.Errorf("read %v", r)
	}
	if name, procs := splitProcs(r.Name.String()); name != "A/size=1-2/peer=it" || procs != "-2" {
		t.Errorf("name %q, processors %q", name, procs)
	}
	if _, _, err := take(t.Context(), scripted(t, "echo PASS"), nil); !errors.Is(err, errSkip) {
		t.Errorf("a program without a result: %v", err)
	}
	if _, _, err := take(t.Context(), scripted(t, "echo it broke >&2; exit 2"), nil); err == nil || !strings.Contains(err.Error(), "it broke") {
		t.Errorf("a program that fails: %v", err)
	}
}

// A run that is stopped keeps its samples, and the sample under way is no failure.
func TestStoppedRunKeepsItsSamples(t *testing.T) {
	p := scripted(t, "echo BenchmarkPair 1 2 ns/op")
	b := &benchmark{"Pair", &groups[0], []peer{p}}
	ctx, stop := context.WithCancel(t.Context())
	r := &run{scale: scale{rounds: 3}, blind: true, benchmarks: []*benchmark{b}}
	r.ticked = func(*benchmark, peer) { stop() }
	if err := r.do(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the run ends with %v", err)
	}
	r.step(ctx, b, p, 1)
	if c := r.cell(b, p); len(c.samples) != 1 || c.failed != "" || r.took <= 0 {
		t.Errorf("%d samples, failed %q, in %v", len(c.samples), c.failed, r.took)
	}
}

// A signal ends a run, and the folder with the programs goes.
func TestSignalsEndBench(t *testing.T) {
	if testing.Short() {
		t.Skip("builds programs")
	}
	needTools(t)
	b := builder{dir: t.TempDir()}
	if err := b.goBuild(t.Context(), &program{}, "build", "-o", b.file("lab"), module+"/lab"); err != nil {
		t.Fatal(err)
	}
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		scratch := t.TempDir()
		cmd := exec.CommandContext(t.Context(), b.file("lab"), "bench", "--loads", "gomallocs", "--rounds", "100000")
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
		if code := cmd.ProcessState.ExitCode(); code != cli.Interrupted {
			t.Errorf("%v: %v, want exit code %d", signal, cmd.ProcessState, cli.Interrupted)
		}
		if left, _ := filepath.Glob(filepath.Join(scratch, "freehold-bench-*")); len(left) > 0 {
			t.Errorf("%v: %v was left", signal, left)
		}
	}
}
