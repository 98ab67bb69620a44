// Package subject is what is measured: allocators, linked lists in their memory, and data that
// is kept live.
package subject

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/cmalloc"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/lab/run"
)

// An Allocator is under test.
type Allocator struct {
	Alloc     func(size int) ([]byte, error) // contents are undefined
	Free      func(b []byte)                 // the caller keeps no reference
	Trim      func()                         // gives all memory that it can to the operating system, now
	Allocated func() int64                   // bytes in live blocks by its own figures, -1 if it has none
	Close     func()
}

// A Kind says how to make an allocator.
type Kind struct {
	Name  string
	Title string        // in charts and tables
	About string        // what free and trim mean there
	Decay time.Duration // how long free memory stays before it goes back, 0 if nobody knows
	// Open returns an allocator. limit is a hard limit in bytes, 0 for none; an allocator that
	// has no such thing refuses it.
	Open func(limit int64) (*Allocator, error)
}

// Kinds are all allocators.
var Kinds = []Kind{
	{
		"freehold", "freehold", "freehold.Heap: free returns a block at once, Trim gives free pages back without waiting for the decay",
		time.Second, // the default of HeapOptions
		openFreehold,
	},
	{"go", "Go heap", "the Go heap: free drops the reference and the collector finds out later; trim is debug.FreeOSMemory", 0, openGo},
	{
		"libc", "libc", "the C library's malloc, through cgo: free returns a block at once, trim is malloc_trim where there is one",
		0, func(limit int64) (*Allocator, error) { return openC("libc", limit) },
	},
	{
		"jemalloc", "jemalloc", "jemalloc, through cgo: free returns a block at once, trim purges all arenas; it looks at its decay when it is called, or in the background with MALLOC_CONF=background_thread:true",
		10 * time.Second, // jemalloc's default
		func(limit int64) (*Allocator, error) { return openC("jemalloc", limit) },
	},
}

func openFreehold(limit int64) (*Allocator, error) {
	h := freehold.NewHeap(&freehold.HeapOptions{Name: "lab", MaxBytes: int(limit)})
	alloc := func(size int) ([]byte, error) { return h.Alloc(size, 16) }
	return &Allocator{alloc, h.Free, h.Trim, func() int64 { return int64(h.Stats().LiveBytes) }, h.Close}, nil
}

// openGo sets the memory limit to nine tenths of the machine's memory, unless the user has set
// one: garbage may double a heap, and the kernel would kill the process where a limit makes the
// collector work harder.
func openGo(limit int64) (*Allocator, error) {
	if limit > 0 {
		return nil, noLimit("go")
	}
	before := debug.SetMemoryLimit(-1)
	if total, _ := budget.Memory(); total > 0 && os.Getenv("GOMEMLIMIT") == "" && before == math.MaxInt64 {
		debug.SetMemoryLimit(total / 10 * 9)
	}
	return &Allocator{
		func(size int) ([]byte, error) { return make([]byte, size), nil }, func([]byte) {}, debug.FreeOSMemory,
		func() int64 { return -1 }, func() { debug.SetMemoryLimit(before) },
	}, nil
}

// openC returns C's heap. It has no figures: C's are of all C code in the process, and of what its
// threads' caches keep.
func openC(name string, limit int64) (*Allocator, error) {
	if limit > 0 {
		return nil, noLimit(name)
	}
	h, err := newC(name)
	if err != nil {
		return nil, err
	}
	alloc := func(size int) ([]byte, error) { return h.Alloc(size, 16) }
	return &Allocator{alloc, h.Free, func() { h.Trim() }, func() int64 { return -1 }, func() {}}, nil
}

// newC returns C's heap if the malloc of that name, "libc" or "jemalloc",
// serves it in this process. There is one malloc in a process, and what is
// reported under its name must be its own.
func newC(name string) (*cmalloc.Heap, error) {
	h, err := cmalloc.New()
	if err != nil {
		return nil, run.Unavailablef("%s: %w", name, err)
	}
	is, version := cmalloc.Implementation()
	if is == name || name == "libc" && is == "glibc" {
		return h, nil
	}
	if preload := os.Getenv(preloadVariable); preload != "" {
		return nil, run.Unavailablef("%s: malloc is %s %s here, with %s=%s: that library is not installed, or is another malloc", name, is, version, preloadVariable, preload)
	}
	return nil, run.Unavailablef("%s: malloc is %s %s here, by the tags of this build", name, is, version)
}

func noLimit(name string) error {
	return cli.Usagef("--limit: the allocator %s has no hard limit", name)
}

// A library in LD_PRELOAD replaces the C library's malloc from the start of a process on.
const (
	preloadVariable = "LD_PRELOAD"
	jemallocLibrary = "libjemalloc.so.2" // found by the dynamic linker
)

// Environment returns what the environment of a process must have in addition, for what is called
// name. A build with -tags jemalloc has its malloc; elsewhere the library is put before the C
// library's, and newC sees in that process whether it is there.
func Environment(name string) []string {
	is, _ := cmalloc.Implementation()
	now := os.Getenv(preloadVariable)
	if name != "jemalloc" || is == "" || is == "jemalloc" || runtime.GOOS != "linux" || strings.Contains(now, jemallocLibrary) {
		return nil
	}
	return []string{preloadVariable + "=" + strings.TrimSuffix(jemallocLibrary+":"+now, ":")}
}

// KindNamed returns the allocator called name.
func KindNamed(name string) (Kind, error) {
	for _, k := range Kinds {
		if k.Name == name {
			return k, nil
		}
	}
	return Kind{}, cli.Usagef("no allocator is called %q; there are: %s", name, strings.Join(KindNames(), ", "))
}

func KindNames() (names []string) {
	for _, k := range Kinds {
		names = append(names, k.Name)
	}
	return names
}

func ListNames() (names []string) {
	for _, k := range Lists {
		names = append(names, k.Name)
	}
	return names
}

func ShapeNames() (names []string) {
	for _, s := range Shapes {
		names = append(names, s.Name)
	}
	return names
}

func MemoryNames() (names []string) {
	for _, m := range Memories {
		names = append(names, m.Name)
	}
	return names
}
