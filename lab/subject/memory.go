// Package subject has the memories that are measured, and the data that is kept in them.
package subject

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cmalloc"
	"github.com/freehold-go/freehold/internal/sysmem"
	"github.com/freehold-go/freehold/lab/run"
)

// A Memory is a place for data.
type Memory struct {
	Name  string
	Title string        // in charts and tables
	About string        // what free and trim mean there
	Decay time.Duration // how long free memory stays before it goes back, 0 if nobody knows
	// Open returns an allocator. limit is a hard limit in bytes, 0 for none.
	Open func(limit int64) (*Allocator, error)
}

// An Allocator is a memory that is open. What it has allocated may be left to the end of the
// process.
type Allocator struct {
	freehold.Allocator
	Trim  func()       // gives all memory that it can to the operating system, now
	Live  func() int   // blocks by its own figures, 0 if it has none
	Bytes func() int64 // in live blocks, likewise
}

// Memories are all of them.
var Memories = []Memory{
	{
		Name: "go", Title: "Go heap", Open: openGo,
		About: "the Go heap: free drops the reference and the collector finds out later; trim is debug.FreeOSMemory",
	},
	{
		Name: "freehold", Title: "freehold", Open: openFreehold,
		About: "freehold.Heap: free returns a block at once, Trim gives free pages back without waiting for the decay",
		Decay: time.Second, // the default of HeapOptions
	},
	{
		Name: "libc", Title: "libc", Open: openC("libc"),
		About: "the C library's malloc, through cgo: free returns a block at once, trim is malloc_trim where there is one",
	},
	{
		Name: "jemalloc", Title: "jemalloc", Open: openC("jemalloc"),
		About: "jemalloc, through cgo: free returns a block at once, trim purges all arenas; it looks at its decay when it is called, or in the background with MALLOC_CONF=background_thread:true",
		Decay: 10 * time.Second, // jemalloc's default
	},
}

// Named returns the memory called name, which is one of them.
func Named(name string) Memory {
	return Memories[slices.IndexFunc(Memories, func(m Memory) bool { return m.Name == name })]
}

// Names are the names of all memories.
func Names() (names []string) {
	for _, m := range Memories {
		names = append(names, m.Name)
	}
	return names
}

func openFreehold(limit int64) (*Allocator, error) {
	h := freehold.NewHeap(&freehold.HeapOptions{Name: "lab", MaxBytes: int(limit)})
	return &Allocator{
		Allocator: h, Trim: h.Trim, Live: func() int { return int(h.Stats().Live) }, Bytes: func() int64 { return int64(h.Stats().LiveBytes) },
	}, nil
}

type goHeap struct{}

func (goHeap) Alloc(size, _ int) ([]byte, error)  { return make([]byte, size), nil }
func (goHeap) Zeroed(size, _ int) ([]byte, error) { return make([]byte, size), nil }
func (goHeap) Resize([]byte, int) ([]byte, bool)  { return nil, false }
func (goHeap) Free([]byte)                        {}

// openGo sets the memory limit to nine tenths of the machine's memory, unless the user has set
// one: garbage may double a heap, and the kernel would kill the process where a limit makes the
// collector work harder.
func openGo(int64) (*Allocator, error) {
	if total, _ := sysmem.Memory(); total > 0 && os.Getenv("GOMEMLIMIT") == "" && debug.SetMemoryLimit(-1) == math.MaxInt64 {
		debug.SetMemoryLimit(total / 10 * 9)
	}
	return &Allocator{Allocator: goHeap{}, Trim: debug.FreeOSMemory, Live: func() int { return 0 }, Bytes: func() int64 { return 0 }}, nil
}

// openC opens C's heap if it is served by the named malloc in this process. There is one malloc in
// a process, and figures under its name must be its own. Its bytes are of all C code in the
// process, and of its threads' caches.
func openC(name string) func(int64) (*Allocator, error) {
	return func(int64) (*Allocator, error) {
		h, err := cmalloc.New()
		if err != nil {
			return nil, run.Unavailablef("%s: %w", name, err)
		}
		is, version := cmalloc.Implementation()
		if is == name || name == "libc" && is == "glibc" {
			return &Allocator{Allocator: h, Trim: h.Trim, Live: h.Live, Bytes: func() int64 { return int64(h.Stats().Allocated) }}, nil
		}
		why := "by the tags of this build"
		if preload := os.Getenv(preloadVariable); preload != "" {
			why = "with " + preloadVariable + "=" + preload + ": that library is not installed, or is another malloc"
		}
		return nil, run.Unavailablef("%s: malloc is %s %s here, %s", name, is, version, why)
	}
}

// A library in LD_PRELOAD replaces the C library's malloc from the start of a process on.
const (
	preloadVariable = "LD_PRELOAD"
	jemallocLibrary = "libjemalloc.so.2" // found by the dynamic linker
)

// Environment returns the variables to add to the environment of a process that measures the memory
// of a name. A build with -tags jemalloc has its malloc; elsewhere the library is put before the C
// library's, and openC sees in that process whether it is there.
func Environment(name string) []string {
	is, _ := cmalloc.Implementation()
	now := os.Getenv(preloadVariable)
	if name != "jemalloc" || is == "" || is == "jemalloc" || runtime.GOOS != "linux" || strings.Contains(now, jemallocLibrary) {
		return nil
	}
	return []string{preloadVariable + "=" + strings.TrimSuffix(jemallocLibrary+":"+now, ":")}
}
