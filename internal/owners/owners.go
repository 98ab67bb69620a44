// Owners: what holds memory until it is closed.
//
//	made --Watch--> watched --Closed--> forgotten
//	                   |
//	                   +--dropped, and found by the collector--> reported
//
// A watch is found by the address of its owner, so owners need no field for it. It refers
// to its owner weakly. If another owner is at that address, the first was dropped.

// Package owners reports owners of memory, such as heaps and arenas, that the collector
// finds unreachable before their Close. It does so in FREEHOLD_DEBUG=leak alone: otherwise
// Watch and Closed cost a load each.
package owners

import (
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
	maxDropped = 1 << 10 // entries of Dropped
	others     = "(other)"
)

var on atomic.Bool

func init() { on.Store(mode.On("leak")) }

// On reports whether owners are watched.
func On() bool { return on.Load() }

// Dropped are the owners that one stack made and that were dropped without Close.
type Dropped struct {
	Kind  string    // the type, such as "arena.Arena"; "(other)" if there are more than are kept
	Name  string    // that it was given, or ""
	Stack []uintptr // as from runtime.Callers, from the caller of the constructor's package on
	Count int
}

// watch is an owner that is watched.
type watch struct {
	kind, name string
	stack      stacks.ID
	gone       func() bool // the owner is unreachable
	cleanup    runtime.Cleanup
}

// owners has the watches. mu guards all of it but stacks.
var owners struct {
	stacks  stacks.Table
	mu      lockrank.Mutex[lockrank.Leaf]
	open    map[uintptr]*watch // by the owner's address
	dropped []Dropped
	ids     []stacks.ID // of the stacks in dropped
	reports io.Writer   // nil is standard error
}

// Watch watches an owner, a pointer to the beginning of an object, until Closed.
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

// end reports the owner of w, which was at that address, unless that was done.
func end(at uintptr, w *watch) {
	owners.mu.Lock()
	defer owners.mu.Unlock()
	if owners.open[at] == w {
		delete(owners.open, at)
		w.report()
	}
}

// Collect runs the garbage collector and reports the owners that it finds dropped. It does
// not wait for cleanups.
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

// All returns the dropped owners that were found so far, in order.
func All() []Dropped {
	owners.mu.Lock()
	defer owners.mu.Unlock()
	return slices.Clone(owners.dropped)
}

// report writes that w's owner was dropped, once for each stack and name, and counts it. mu
// is held.
func (w *watch) report() {
	full := len(owners.dropped) >= maxDropped-1
	for i, d := range owners.dropped {
		if owners.ids[i] == w.stack && d.Kind == w.kind && d.Name == w.name {
			owners.dropped[i].Count++
			return
		}
	}
	if full && w.kind != others {
		(&watch{kind: others}).report()
		return
	}
	pcs, _ := owners.stacks.Stack(w.stack)
	pkg, _, _ := strings.Cut(w.kind, ".")
	d := Dropped{w.kind, w.name, stacks.Outside(pcs, pkg), 1}
	owners.dropped = append(owners.dropped, d)
	owners.ids = append(owners.ids, w.stack)
	to := owners.reports
	if to == nil {
		to = os.Stderr
	}
	fmt.Fprintf(to, "freehold: %s was dropped without Close, made at:\n%s", d, stacks.Text(d.Stack, ""))
}

// String returns the owner's type and name.
func (d Dropped) String() string {
	if d.Name == "" {
		return d.Kind
	}
	return fmt.Sprintf("%s %q", d.Kind, d.Name)
}

// WatchTo watches owners, and writes reports to w, until restore is called, which forgets
// what was found. It is for tests.
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
