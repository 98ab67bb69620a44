// Build: from rows to programs, in a temporary folder.
//
// A row that cannot be built here is not an error: it keeps the reason, and
// the report prints it.

package bench

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

//go:embed native/native.c
var nativeSource []byte

const (
	workerPackage  = "github.com/freehold-go/freehold/lab/bench/worker"
	keyedPackage   = "github.com/freehold-go/freehold/lab/bench/keyed"
	sorterPackage  = "github.com/freehold-go/freehold/lab/bench/sorter"
	commandPackage = "github.com/freehold-go/freehold/cmd/freehold"
)

// A builder makes the rows' programs in dir.
type builder struct {
	dir string
	cgo bool

	// The C program is built once for all allocators and once without any.
	native, nativeLoop func() error

	// The sorter is built once for all peers; one of them runs the command.
	sorter, command func() error
}

func newBuilder(ctx context.Context, dir string) *builder {
	out, err := exec.CommandContext(ctx, "go", "env", "CGO_ENABLED").Output()
	b := &builder{dir: dir, cgo: err == nil && strings.TrimSpace(string(out)) == "1"}
	b.native = sync.OnceValue(func() error { return b.compile(ctx, "native") })
	b.nativeLoop = sync.OnceValue(func() error { return b.compile(ctx, "native-loop", "-DLOOP") })
	b.sorter = sync.OnceValue(func() error { return b.goBuild(ctx, "sorter", sorterPackage, nil) })
	b.command = sync.OnceValue(func() error { return b.goBuild(ctx, "freehold-command", commandPackage, nil) })
	return b
}

// buildAll builds all rows, as many at once as there are processors, and calls
// done after each.
func (b *builder) buildAll(ctx context.Context, rows []*row, done func(*row)) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	slots := make(chan struct{}, runtime.NumCPU())
	for _, r := range rows {
		slots <- struct{}{}
		wg.Go(func() {
			b.build(ctx, r)
			<-slots
			mu.Lock()
			defer mu.Unlock()
			done(r)
		})
	}
	wg.Wait()
}

// build fills in r's program, or why there is none.
func (b *builder) build(ctx context.Context, r *row) {
	var err error
	switch {
	case r.native:
		err = b.buildNative(ctx, r)
	case r.sorter != "":
		err = b.buildSorter(r)
	case r.keyed:
		r.path = b.file(r.name)
		err = b.goBuild(ctx, r.name, keyedPackage, r)
	default:
		err = b.buildWorker(ctx, r)
	}
	if err == nil {
		err = b.identify(ctx, r)
	}
	if err != nil {
		r.skip = err.Error()
	}
}

func (b *builder) buildWorker(ctx context.Context, r *row) error {
	for _, file := range r.needs {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("%s is not installed", file)
		}
	}
	if r.cgo && !b.cgo {
		return errors.New("cgo is off or there is no C compiler")
	}
	r.path = b.file(r.name)
	return b.goBuild(ctx, r.name, workerPackage, r)
}

func (b *builder) buildSorter(r *row) error {
	r.path = b.file("sorter")
	r.args = []string{"-peer", r.sorter, "-dir", b.dir, "-command", b.file("freehold-command")}
	if err := b.sorter(); err != nil || r.sorter != "command" {
		return err
	}
	return b.command()
}

// goBuild builds a package, for a row if it is not nil.
func (b *builder) goBuild(ctx context.Context, name, pkg string, r *row) error {
	tags, cgo := "", "CGO_ENABLED=0"
	if r != nil {
		tags = r.tags
		if r.cgo {
			cgo = "CGO_ENABLED=1"
		}
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-tags", tags, "-o", b.file(name), pkg)
	cmd.Env = append(os.Environ(), cgo)
	return outcome(cmd)
}

// file returns the path of a program.
func (b *builder) file(name string) string { return filepath.Join(b.dir, exe(name)) }

func (b *builder) buildNative(ctx context.Context, r *row) error {
	if runtime.GOOS != "linux" && (r.preload != "" || runtime.GOOS == "windows") {
		return errors.New("C programs are measured on Linux")
	}
	if r.preload != "" {
		library, err := findLibrary(ctx, r.preload)
		if err != nil {
			return err
		}
		r.env = append(r.env, "LD_PRELOAD="+library)
	}

	if r.loop {
		r.path = filepath.Join(b.dir, "native-loop")
		return b.nativeLoop()
	}
	r.path = filepath.Join(b.dir, "native")
	return b.native()
}

// compile makes a program of native.c.
func (b *builder) compile(ctx context.Context, name string, flags ...string) error {
	source := filepath.Join(b.dir, name+".c")
	if err := os.WriteFile(source, nativeSource, 0o600); err != nil {
		return err
	}
	args := append([]string{"-O2", "-fno-builtin", "-pthread"}, flags...)
	args = append(args, "-o", filepath.Join(b.dir, name), source)
	if runtime.GOOS == "linux" {
		args = append(args, "-ldl")
	}
	return outcome(exec.CommandContext(ctx, "cc", args...))
}

// identify runs r's program once and asks it which allocator it has.
func (b *builder) identify(ctx context.Context, r *row) error {
	s, err := take(ctx, r, load{args: []string{"-load", "version"}})
	if err != nil {
		return err
	}
	if !strings.HasPrefix(s.Version, r.expect) {
		return fmt.Errorf("runs on %s instead", s.Version)
	}
	r.version, _, _ = strings.Cut(s.Version, "-")
	return nil
}

// findLibrary returns the path of a shared library, as the dynamic linker
// finds it.
func findLibrary(ctx context.Context, name string) (string, error) {
	out, err := exec.CommandContext(ctx, "ldconfig", "-p").Output()
	if err != nil {
		out, err = exec.CommandContext(ctx, "/sbin/ldconfig", "-p").Output()
	}
	if err != nil {
		return "", errors.New("ldconfig does not list the shared libraries")
	}
	for line := range strings.Lines(string(out)) {
		if left, path, ok := strings.Cut(line, "=>"); ok && strings.HasPrefix(strings.TrimSpace(left), name+" ") {
			return strings.TrimSpace(path), nil
		}
	}
	return "", fmt.Errorf("%s is not installed", name)
}

// outcome runs cmd; its error is the last line that cmd said.
func outcome(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if lines := bytes.Split(bytes.TrimSpace(out), []byte("\n")); len(lines[len(lines)-1]) > 0 {
		return fmt.Errorf("%s: %s", filepath.Base(cmd.Path), lines[len(lines)-1])
	}
	return fmt.Errorf("%s: %w", filepath.Base(cmd.Path), err)
}

func exe(name string) string {
	if runtime.GOOS == "windows" {
		return name + ".exe"
	}
	return name
}
