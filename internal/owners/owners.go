// Owners: leak reports for heaps, arenas and other owners of memory.
//
//	made --Watch--> watched --Closed--> forgotten
//	                   |
//	                   +--collected without Close--> reported, on standard error too
//	                                                 unless Collects was called
//
// The watches are in a map by the owner's address, so owners need no field for them. A watch
// holds its owner by a weak pointer. If a new owner has a watched address, the old one was
// dropped.

// Package owners reports owners of memory, such as heaps and arenas, that become unreachable
// before their Close. It does so only with FREEHOLD_DEBUG=leak: otherwise Watch and Closed
// cost a load each.
package owners

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"
	"weak"

	"github.com/freehold-go/freehold/internal/lockrank"
	"github.com/freehold-go/freehold/internal/mode"
	"github.com/freehold-go/freehold/internal/stacks"
)

const (
	maxDropped = 1 << 10 // entries of dropped
	others     = "(other)"
)

var on atomic.Bool

func init() { on.Store(mode.On("leak")) }

// On reports whether owners are watched.
func On() bool { return on.Load() }

// Owned counts owners of one stack, kind and name.
type Owned struct {
	Kind  string    // the type, such as "arena.Arena"; "(other)" for the rest of a full list
	Name  string    // the owner's name, or ""
	Stack []uintptr // program counters; the innermost called the constructor's package
	Count int

	Collected bool // the collector closed them, as Options.Collect asks for
}

// watch describes a watched owner.
type watch struct {
	kind, name string
	stack      stacks.ID
	collects   bool
	gone       func() bool // reports whether the owner was collected
	cleanup    runtime.Cleanup
}

// owners holds the watches and the reports. mu guards all fields but stacks.
var owners struct {
	stacks  stacks.Table
	mu      lockrank.Mutex[lockrank.Leaf]
	open    map[uintptr]*watch // by the owner's address
	dropped []Owned
	ids     []stacks.ID // the stack of each entry of dropped
	reports io.Writer   // nil is standard error
}

// Watch watches an owner until Closed. The pointer must be to the beginning of an object.
func Watch[T any](owner *T, kind, name string) {
	if On() {
		weakly := weak.Make(owner)
		w := &watch{kind: kind, name: name, gone: func() bool { return weakly.Value() == nil }}
		w.stack = owners.stacks.Capture(0)
		at := uintptr(unsafe.Pointer(owner))
		w.cleanup = runtime.AddCleanup(owner, func(w *watch) { end(at, w) }, w)
		add(at, w)
		runtime.KeepAlive(owner)
	}
}

// Collects says that the collector closes a watched owner, so that it is no leak if it is dropped.
func Collects[T any](owner *T) {
	if On() {
		owners.mu.Lock()
		defer owners.mu.Unlock()
		if w := owners.open[uintptr(unsafe.Pointer(owner))]; w != nil {
			w.collects = true
		}
	}
}

// Closed ends the watch of an owner, if there is one.
func Closed[T any](owner *T) {
	if On() {
		closed(uintptr(unsafe.Pointer(owner)))
	}
}

func add(at uintptr, w *watch) {
	owners.mu.Lock()
	defer owners.mu.Unlock()
	if owners.open == nil {
		owners.open = map[uintptr]*watch{}
	}
	if before := owners.open[at]; before != nil {
		before.report()
	}
	owners.open[at] = w
}

func closed(at uintptr) {
	owners.mu.Lock()
	defer owners.mu.Unlock()
	if w := owners.open[at]; w != nil {
		w.cleanup.Stop()
		delete(owners.open, at)
	}
}

// end is the cleanup of the owner that was at an address. It reports the owner unless Collect
// or add has done so.
func end(at uintptr, w *watch) {
	owners.mu.Lock()
	defer owners.mu.Unlock()
	if owners.open[at] == w {
		delete(owners.open, at)
		w.report()
	}
}

// Collect runs the garbage collector and reports the owners that it finds dropped, without
// waiting for their cleanups.
func Collect() {
	runtime.GC()
	owners.mu.Lock()
	defer owners.mu.Unlock()
	for at, w := range owners.open {
		if w.gone() {
			delete(owners.open, at)
			w.report()
		}
	}
}

// CollectQuietly is Collect without reports, now and later, for a caller that lists the owners.
func CollectQuietly() {
	owners.mu.Lock()
	owners.reports = io.Discard
	owners.mu.Unlock()
	Collect()
}

// Open returns the watched owners of a kind that are neither closed nor dropped, by name.
func Open(kind string) []Owned {
	owners.mu.Lock()
	defer owners.mu.Unlock()
	var all []Owned
	for _, w := range owners.open {
		if w.kind == kind {
			all = append(all, w.owned())
		}
	}
	slices.SortFunc(all, func(a, b Owned) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), slices.Compare(a.Stack, b.Stack))
	})
	return merge(all)
}

// merge counts neighbours that are equal as one.
func merge(all []Owned) (merged []Owned) {
	for _, o := range all {
		if last := len(merged) - 1; last >= 0 && merged[last].String() == o.String() && slices.Equal(merged[last].Stack, o.Stack) {
			merged[last].Count++
		} else {
			merged = append(merged, o)
		}
	}
	return merged
}

// All returns the dropped owners found so far, in the order in which they were found.
func All() []Owned {
	owners.mu.Lock()
	defer owners.mu.Unlock()
	return slices.Clone(owners.dropped)
}

// report counts w's owner as dropped. It prints a report for the first of each stack, kind and
// name, unless the collector closes the owner. mu is held.
func (w *watch) report() {
	full := len(owners.dropped) >= maxDropped-1
	for i, d := range owners.dropped {
		if owners.ids[i] == w.stack && d.Kind == w.kind && d.Name == w.name && d.Collected == w.collects {
			owners.dropped[i].Count++
			return
		}
	}
	if full && w.kind != others {
		(&watch{kind: others}).report()
		return
	}
	d := w.owned()
	owners.dropped = append(owners.dropped, d)
	owners.ids = append(owners.ids, w.stack)
	if d.Collected {
		return
	}
	to := owners.reports
	if to == nil {
		to = os.Stderr
	}
	fmt.Fprintf(to, "freehold: %s was dropped without Close, made at:\n%s", d, stacks.Text(d.Stack, ""))
}

// owned returns w's owner.
func (w *watch) owned() Owned {
	pcs, _ := owners.stacks.Stack(w.stack)
	pkg, _, _ := strings.Cut(w.kind, ".")
	return Owned{w.kind, w.name, stacks.Outside(pcs, pkg), 1, w.collects}
}

// String returns the owner's type and name.
func (d Owned) String() string {
	if d.Name == "" {
		return d.Kind
	}
	return fmt.Sprintf("%s %q", d.Kind, d.Name)
}

// WatchTo starts watching, with reports to w, for tests. restore ends that and forgets all
// reports.
func WatchTo(w io.Writer) (restore func()) {
	was := on.Swap(true)
	set := func(w io.Writer) {
		owners.mu.Lock()
		defer owners.mu.Unlock()
		owners.open, owners.dropped, owners.ids, owners.reports = nil, nil, nil, w
	}
	set(w)
	return func() {
		on.Store(was)
		set(nil)
	}
}
