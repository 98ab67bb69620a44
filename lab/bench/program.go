// Program: who is measured, and how the programs are built.
//
// A program that cannot be built here is not an error: it keeps the reason, and the report prints
// it.

package bench

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/perf/benchfmt"
)

//go:embed native/native.c
var nativeSource []byte

// Recorded calls of malloc, for Replay, unless FREEHOLD_TRACES names a folder with others.
//
//go:embed traces
var traces embed.FS

const (
	module      = "github.com/freehold-go/freehold"
	commandName = "freehold-command" // of freehold sort's program

	tracesVariable = "FREEHOLD_TRACES" // names the folder of traces
)

// A program has the benchmarks of one peer or of several: the test binary of a package, where one
// allocator is built in by tags, or native/native.c, with a library preloaded.
type program struct {
	name string // the peer's, where there is one
	what string

	pkg     string // below lab/bench
	tags    string
	cgo     bool
	loop    bool   // no allocator: what the loops themselves cost
	native  bool   // in C
	preload string // the library's file name, which the dynamic linker looks for
	expect  string // how the name of the allocator that it tells begins
	needs   string // a file without which it cannot be built

	tree string // the folder of another freehold, or "" for this one

	runs []string // how the names of its benchmarks begin; nil means all that it has

	// What build found.
	path      string
	env       []string
	allocator string
	skip      string // why there is no program
	names     []string
	cpu       string // the processor's name, as a test binary tells it
}

// The loads that say something of each allocator: in little time, and with gigabytes.
var (
	quickLoads  = []string{"Pair/", "Mixed/", "Handover/", "Zeroed/"}
	largeLoads  = []string{"Memory/", "MemoryChurn/", "Huge/"}
	usualLoads  = slices.Concat(quickLoads, largeLoads, []string{"Grow/", "Replay/"})
	stressLoads = []string{"Scatter/", "Larson/", "Xmalloc/", "Mstress/", "Peak/"}
	arenaLoads  = []string{"Bump/size=64/goroutines=1", "BumpNew/", "Reset"}
)

// What native/tcmalloc-google and native/peers make.
const (
	googleTCMalloc = "/usr/local/lib/libtcmalloc_google.so"
	mimalloc3      = "/usr/local/lib/libmimalloc3.so"
	rpmalloc       = "/usr/local/lib/librpmalloc.so"
	snmalloc       = "/usr/local/lib/libsnmalloc.so"
)

// programs returns all programs, and those for --best of the tree in before, if that is not "".
func programs(before string) []*program {
	one := []string{"Pair/size=64/goroutines=1"}
	all := []*program{
		{name: "freehold", what: "freehold's Heap, called directly"},
		{name: "freehold-interface", what: "freehold's Heap behind the Allocator interface", tags: "peer_interface", runs: quickLoads},
		{name: "freehold-pointer", what: "freehold's Malloc and FreePointer", tags: "peer_pointer", runs: slices.Concat(quickLoads, []string{"Replay/"})},
		{name: "freehold-pool", what: "freehold's Pool of values of 64 B", tags: "peer_pool", runs: []string{"Pair/size=64/"}},
		{name: "freehold-pool-cache", what: "freehold's Pool through a Cache, for one goroutine", tags: "peer_pool_cache", runs: one},
		{name: "freehold-arena", what: "freehold's Arena, for one goroutine", tags: "peer_arena", runs: arenaLoads},
		{name: "freehold-shared", what: "freehold's arena.Shared", tags: "peer_shared", runs: []string{"Bump/", "BumpNew/", "Reset"}},
		{name: "freehold-sampled", what: "freehold's Heap while blocks are sampled for a profile, at the default rate", tags: "peer_sampled", runs: []string{"Pair/"}},
		{name: "go", what: "the Go heap: new for pairs, make elsewhere; its collections included", tags: "peer_goheap"},
		{name: "modernc", what: "modernc.org/memory, under a mutex where several goroutines use it", tags: "peer_modernc", runs: usualLoads},
		{name: "ristretto", what: "ristretto's z as it is by default: the Go heap, always zeroed", tags: "peer_ristretto", runs: quickLoads},
		{name: "ristretto-allocator", what: "ristretto's z.Allocator, an arena, on the Go heap as by default", tags: "peer_ristretto_allocator", runs: slices.Concat(arenaLoads, []string{"Bump/"})},
		{name: "cgo-libc", what: "C's malloc through cgo", tags: "peer_cgo", cgo: true, runs: usualLoads},
		{name: "cgo-jemalloc", what: "jemalloc through cgo", tags: "peer_cgo_jemalloc", cgo: true, expect: "jemalloc", runs: quickLoads},
		{name: "c-libc", what: "C's malloc in a C program", native: true, expect: "libc"},
		{name: "c-jemalloc", what: "jemalloc in a C program", native: true, preload: "libjemalloc.so.2", expect: "jemalloc"},
		{name: "c-mimalloc", what: "mimalloc in a C program", native: true, preload: "libmimalloc.so.2", expect: "mimalloc"},
		{name: "c-tcmalloc-gperftools", what: "gperftools' tcmalloc in a C program", native: true, preload: "libtcmalloc_minimal.so.4", expect: "tcmalloc of gperftools"},
		{name: "c-tcmalloc-google", what: "Google's tcmalloc in a C program", native: true, preload: googleTCMalloc, needs: googleTCMalloc, expect: "tcmalloc of google"},
		{name: "c-mimalloc3", what: "mimalloc 3 in a C program", native: true, preload: mimalloc3, needs: mimalloc3, expect: "mimalloc 3"},
		{name: "c-rpmalloc", what: "rpmalloc in a C program", native: true, preload: rpmalloc, needs: rpmalloc, expect: "rpmalloc"},
		{name: "c-snmalloc", what: "snmalloc in a C program", native: true, preload: snmalloc, needs: snmalloc, expect: "snmalloc"},
		{name: "loop-go", what: "no allocator: what the Go loops cost", tags: "peer_loop", loop: true, runs: slices.Concat(quickLoads, arenaLoads[:2])},
		{name: "loop-c", what: "no allocator: what the C loops cost", native: true, loop: true, runs: quickLoads},
	}
	for _, p := range all {
		p.pkg = "alloc"
		if p.native && p.runs == nil {
			p.runs = slices.Concat(usualLoads, stressLoads)
		}
	}
	all = append(all,
		&program{name: "sorts", what: "records and lines sorted, buffers", pkg: "sorts"},
		&program{name: "keyed", what: "maps, ordered maps, interned strings", pkg: "keyed"},
		&program{name: "keyed-boost", what: "boost's unordered_flat_map and concurrent_flat_map, in C++", pkg: "keyed", tags: "peer_boost", cgo: true, runs: []string{"Numbers/", "Shared/"}},
		&program{name: "keyed-absl", what: "abseil's flat_hash_map and btree_map, in C++", pkg: "keyed", tags: "peer_absl", cgo: true, runs: []string{"Numbers/", "Ordered/"}})
	for _, p := range all {
		if before != "" && slices.Contains([]string{"freehold", "freehold-sampled", "freehold-arena", "keyed"}, p.name) {
			old := *p
			old.name, old.what, old.tree = p.name+beforeSuffix, "the same in "+before, before
			all = append(all, &old)
		}
	}
	return all
}

// runsBenchmark reports whether p has a benchmark that says something of its peer.
func (p *program) runsBenchmark(name string) bool {
	return p.runs == nil || slices.ContainsFunc(p.runs, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// A builder makes the programs in dir.
type builder struct {
	dir string
	cgo bool

	// The C program is built once for all allocators and once without any. The traces are copied
	// once.
	native, nativeLoop, traces func() error
}

func newBuilder(ctx context.Context, dir string) *builder {
	out, err := exec.CommandContext(ctx, "go", "env", "CGO_ENABLED").Output()
	b := &builder{dir: dir, cgo: err == nil && strings.TrimSpace(string(out)) == "1"}
	b.traces = sync.OnceValue(func() error { return os.CopyFS(dir, traces) })
	b.native = sync.OnceValue(func() error { return b.compile(ctx, "native") })
	b.nativeLoop = sync.OnceValue(func() error { return b.compile(ctx, "native-loop", "-DLOOP") })
	return b
}

// buildAll builds all programs, one at a time on each processor, and calls done after each.
func (b *builder) buildAll(ctx context.Context, all []*program, done func(*program)) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	slots := make(chan struct{}, runtime.NumCPU())
	for _, p := range all {
		slots <- struct{}{}
		wg.Go(func() {
			if err := cmp.Or(b.build(ctx, p), p.identify(ctx)); err != nil {
				p.skip = err.Error()
			}
			<-slots
			mu.Lock()
			defer mu.Unlock()
			done(p)
		})
	}
	wg.Wait()
}

// build makes p's program.
func (b *builder) build(ctx context.Context, p *program) error {
	if p.needs != "" {
		if _, err := os.Stat(p.needs); err != nil {
			return fmt.Errorf("%s is not installed", p.needs)
		}
	}
	if p.pkg == "alloc" && os.Getenv(tracesVariable) == "" {
		p.env = append(p.env, tracesVariable+"="+filepath.Join(b.dir, "traces"))
		if err := b.traces(); err != nil {
			return err
		}
	}
	if p.native {
		return b.buildNative(p)
	}
	if p.cgo && !b.cgo {
		return errors.New("cgo is off or there is no C compiler")
	}
	if p.pkg == "sorts" {
		if err := b.goBuild(ctx, p, "build", "-o", b.file(commandName), module+"/cmd/freehold"); err != nil {
			return err
		}
	}
	p.path = b.file(p.name + ".test")
	tags := ""
	if p.tags != "" {
		tags = "peer," + p.tags
	}
	return b.goBuild(ctx, p, "test", "-c", "-tags", tags, "-o", p.path, module+"/lab/bench/"+p.pkg)
}

func (b *builder) goBuild(ctx context.Context, p *program, verb string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{verb, "-ldflags=-s -w"}, args...)...)
	cmd.Env = append(os.Environ(), map[bool]string{false: "CGO_ENABLED=0", true: "CGO_ENABLED=1"}[p.cgo])
	cmd.Dir = p.tree
	return outcome(cmd)
}

// file returns the path of a program.
func (b *builder) file(name string) string { return filepath.Join(b.dir, exe(name)) }

func exe(name string) string {
	if runtime.GOOS == "windows" {
		return name + ".exe"
	}
	return name
}

func (b *builder) buildNative(p *program) error {
	if runtime.GOOS != "linux" && (p.preload != "" || runtime.GOOS == "windows") {
		return errors.New("measuring C programs takes Linux")
	}
	if p.preload != "" { // the dynamic linker goes on without it if it is not installed
		p.env = append(p.env, "LD_PRELOAD="+p.preload)
	}
	if p.loop {
		p.path = b.file("native-loop")
		return b.nativeLoop()
	}
	p.path = b.file("native")
	return b.native()
}

// compile makes a program of native.c.
func (b *builder) compile(ctx context.Context, name string, flags ...string) error {
	source := filepath.Join(b.dir, name+".c")
	if err := os.WriteFile(source, nativeSource, 0o600); err != nil {
		return err
	}
	args := append([]string{"-O2", "-fno-builtin", "-pthread"}, flags...)
	args = append(args, "-o", b.file(name), source)
	if runtime.GOOS == "linux" {
		args = append(args, "-ldl")
	}
	return outcome(exec.CommandContext(ctx, "cc", args...))
}

// identify runs p once and asks it for its benchmarks and its allocator.
func (p *program) identify(ctx context.Context) error {
	var args []string
	if !p.native {
		args = []string{"-test.run=^$", "-test.bench=.", "-test.benchtime=1x", "-list"}
	}
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Env = append(os.Environ(), p.env...)
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(out)) {
		if name, ok := strings.CutPrefix(line, "allocator: "); ok {
			name, _, _ = strings.Cut(strings.TrimSpace(name), "-")
			p.allocator = name
		}
	}
	for in := benchfmt.NewReader(bytes.NewReader(out), p.name); in.Scan(); {
		if r, ok := in.Result().(*benchfmt.Result); ok {
			name, _ := splitProcs(r.Name.String())
			p.names, p.cpu = append(p.names, name), r.GetConfig("cpu")
		}
	}
	if !strings.HasPrefix(p.allocator, p.expect) {
		return fmt.Errorf("runs on %s instead: is %s installed?", p.allocator, cmp.Or(p.preload, p.expect))
	}
	return nil
}

// splitProcs takes the number of processors from the end of a benchmark's name.
func splitProcs(name string) (rest, procs string) {
	if i := strings.LastIndexByte(name, '-'); i >= 0 && strings.Trim(name[i+1:], "0123456789") == "" {
		return name[:i], name[i:]
	}
	return name, ""
}

// outcome runs cmd; its error is the last line that cmd said.
func outcome(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err != nil {
		lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
		return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, lines[len(lines)-1])
	}
	return nil
}
