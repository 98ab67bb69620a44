// Snapshot: the data of the page.

package web

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	gometrics "runtime/metrics"
	"slices"
	"strings"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/cache"
	callstacks "github.com/freehold-go/freehold/internal/stacks"
	"github.com/freehold-go/freehold/internal/sysmem"
	"github.com/freehold-go/freehold/metrics"
	"github.com/freehold-go/freehold/track"
)

// Format is Snapshot.Format. It changes with the meaning of a field.
const Format = "freehold/1"

// mostStacks is the most stacks in a snapshot.
const mostStacks = 20

// Snapshot has the figures of a process's memory, in bytes. Its JSON has the fields' names.
type Snapshot struct {
	Format  string // [Format]
	Time    time.Time
	Started time.Time // when the process had initialized this package
	Program string    // the executable's name
	PID     int
	Go      string // the version of Go
	Slow    string // why small blocks do not take the fast path: the error of freehold.FastPath; "" if they are

	Resident int // physical memory of the process; 0 if the system does not tell (Linux does)
	GoMemory int // memory of the Go runtime for its heap, stacks and bookkeeping, without returned memory

	Heaps []freehold.Stats    // by name, heaps of one name added up
	Tags  []freehold.TagStats // freehold.AllTags; a tag includes those below it

	Caches []cache.Stats // by name, caches of one name added up

	Budget   *budget.Stats         // of the budget that runs; nil if there is none
	Accounts []budget.AccountStats // by name, each right before those below it

	SampleRate int     // track.SampleRate; 0 if blocks are not sampled
	Stacks     []Stack // of sampled blocks, the 20 with the most bytes in use
}

// Stack counts the live blocks of one call stack, estimated from samples.
type Stack struct {
	Heap    string
	Tag     string // as in track.Usage
	Blocks  int64
	Bytes   int64
	Callers []Caller // begins with the caller of this module; at most 8
	Through string   // the function of an arena or a pool that it called, such as "arena.(*Arena).Alloc", or ""
}

// Caller is one frame of a stack.
type Caller struct {
	Function string
	File     string // the last two parts of its path
	Line     int
}

var started = time.Now()

// Take returns a snapshot of this process.
func Take() *Snapshot {
	s := &Snapshot{
		Format: Format, Time: time.Now(), Started: started,
		PID: os.Getpid(), Go: runtime.Version(),
		Resident: resident(), GoMemory: goMemory(),
		Heaps: metrics.ByName(), Tags: freehold.AllTags(), Caches: metrics.Caches(), Budget: runningBudget(), Accounts: accounts(), SampleRate: track.SampleRate(),
	}
	if err := freehold.FastPath(); err != nil {
		s.Slow = err.Error()
	}
	if path, err := os.Executable(); err == nil {
		s.Program = filepath.Base(path)
	}
	if s.SampleRate > 0 {
		s.Stacks = stacks()
	}
	return s
}

// goMemory returns the bytes that the Go runtime has from the system.
func goMemory() int {
	samples := []gometrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	gometrics.Read(samples)
	return int(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}

// resident returns the physical memory of the process.
func resident() int {
	stat, _ := sysmem.Stat(sysmem.Root(), "proc/self/status")
	return int(stat["VmRSS"])
}

// stacks returns the stacks of a snapshot: track.Profile, where stacks that look alike are added
// up.
func stacks() []Stack {
	var all []Stack
	at := map[string]int{}
	for _, u := range track.Profile() {
		if u.InUseBytes() <= 0 {
			break
		}
		pcs, through := callstacks.Caller(u.Stack)
		s := Stack{Heap: u.Heap, Tag: u.Tag, Through: through}
		frames := runtime.CallersFrames(pcs)
		for more := len(pcs) > 0; more && len(s.Callers) < 8; {
			var f runtime.Frame
			f, more = frames.Next()
			s.Callers = append(s.Callers, Caller{f.Function, shortPath(f.File), f.Line})
		}
		key := fmt.Sprintf("%+v", s)
		i, found := at[key]
		if !found {
			i = len(all)
			at[key] = i
			all = append(all, s)
		}
		all[i].Blocks += u.InUseObjects()
		all[i].Bytes += u.InUseBytes()
	}
	slices.SortStableFunc(all, func(a, b Stack) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return all[:min(len(all), mostStacks)]
}

// shortPath returns the last two parts of a path.
func shortPath(path string) string {
	parts := strings.Split(path, "/")
	return strings.Join(parts[max(len(parts)-2, 0):], "/")
}

// Heap returns the figures of a heap by name, or false.
func (s *Snapshot) Heap(name string) (freehold.Stats, bool) {
	i := slices.IndexFunc(s.Heaps, func(st freehold.Stats) bool { return st.Name == name })
	if i < 0 {
		return freehold.Stats{}, false
	}
	return s.Heaps[i], true
}

// Total returns the sum of all heaps, for LiveBytes, Live, Active and Resident.
func (s *Snapshot) Total() (sum freehold.Stats) {
	for _, st := range s.Heaps {
		sum.Live += st.Live
		sum.LiveBytes += st.LiveBytes
		sum.Active += st.Active
		sum.Resident += st.Resident
	}
	return sum
}

// Fragmentation returns the part of the bytes of pages in use, Stats.Active, that is not in
// live blocks, from 0 to 1. It is memory that only blocks of the same sizes can use.
// Memory of free pages is no part of it: the heap returns it after HeapOptions.Decay.
func Fragmentation(st freehold.Stats) float64 {
	if st.Active <= st.LiveBytes { // calls in progress
		return 0
	}
	return 1 - float64(st.LiveBytes)/float64(st.Active)
}
