// Package container is the base of all containers: a parent, a name and a state.
//
//	unmade --Make--> open --Closed--> closed
//	                 |  ^
//	            Lend |  | Back
//	                 v  |
//	                 lent: the caller's function has a value, and must not change the container
//
// Each container has a [Base] field. It does not embed it, so Base's methods are not the
// container's.
package container

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/owners"
)

// NoCopy makes go vet report copies of the struct that has it, as for a mutex.
type NoCopy struct{}

func (*NoCopy) Lock()   {}
func (*NoCopy) Unlock() {}

// A Kind names a type of containers in panics and reports.
type Kind struct {
	Type  string // such as "btree.Map"
	Maker string // its constructor, such as "btree.New"
	Is    string // such as "the map is"

	Shared bool // several goroutines may use it, and so its parent, at once
}

type state uint8

const (
	unmade state = iota
	closed
	open
	lent
)

// Base is a container's parent, name and state. The zero value belongs to a container that its
// constructor has not made.
type Base struct {
	_      NoCopy
	Parent freehold.Allocator
	Name   string
	state  state
	gone   *atomic.Bool // whether the parent is closed

	cleanup runtime.Cleanup // of Collect
}

// Make opens the container c, whose Base is b. It panics if parent is nil. It also panics if
// parent is for one goroutine and the container is for several.
func Make[T any](c *T, b *Base, k *Kind, parent freehold.Allocator, name string) {
	arg.NotNil(k.Maker, "parent", parent)
	traits := owners.TraitsOf(parent)
	if k.Shared && traits.Solo {
		arg.Panicf(k.Maker, "parent is a %T, which is for one goroutine at a time: freehold.NewLocked makes it safe", parent)
	}
	b.Parent, b.Name, b.state, b.gone = parent, name, open, traits.Closed
	owners.Watch(c, k.Type, name)
}

// Collect makes the collector free the memory of the container c, whose Base is b, if c is dropped
// without Close. It is called after Make, before the container takes memory. It panics if the
// parent's blocks may end without the container's Close, as in an arena.
//
// The memory is freed as soon as c is unreachable, even if a method of c still runs. So each access
// to the memory must be followed by a use of c, or of Go memory that refers to c: the unlock of its
// lock, or [runtime.KeepAlive]. And no result of c may be its memory.
func Collect[T any](c *T, b *Base, k *Kind) {
	traits := owners.TraitsOf(b.Parent)
	if traits.Ends {
		owners.Closed(c) // else it would be reported as dropped
		arg.Panicf(k.Maker, "Options.Collect with a parent of type %T, whose blocks end without the collector", b.Parent)
	}
	scope := freehold.NewScope(b.Parent)
	b.Parent = scope
	b.cleanup = runtime.AddCleanup(c, func(scope *freehold.Scope) {
		traits.Collect(func() bool { scope.Close(); return true })
	}, scope)
	owners.Collects(c)
}

// MustBeOpen panics, in the name of a method, unless the container can be read.
func (b *Base) MustBeOpen(k *Kind, call string) {
	if b.state < open || b.gone.Load() {
		b.refuse(k, call)
	}
}

// MustBeWritable panics, in the name of a method, unless the container can be changed.
func (b *Base) MustBeWritable(k *Kind, call string) {
	if b.state != open || b.gone.Load() {
		b.refuse(k, call)
	}
}

//go:noinline
func (b *Base) refuse(k *Kind, call string) {
	call = k.Type + "." + call
	switch {
	case b.state == unmade:
		arg.Panicf(call, "zero value: %s makes one", k.Maker)
	case b.state == closed:
		arg.Panicf(call, "%s closed", k.Is)
	case b.gone.Load():
		owners.AskParent(call, b.Parent)
	}
	what, _, _ := strings.Cut(k.Is, " is")
	arg.Panicf(call, "a function that another call calls must not change %s", what)
}

// Lend forbids changes of the container until Back.
func (b *Base) Lend() { b.state = lent }

// Back ends Lend.
func (b *Base) Back() { b.state = open }

// Lent is Asked for a container that is lent to f. Unless f returns Store, *v is as before.
func Lent[V any](b *Base, k *Kind, v *V, found bool, f func(v *V, found bool) freehold.Change) (change freehold.Change) {
	old := *v
	b.Lend()
	defer func() {
		b.Back()
		if change != freehold.Store {
			*v = old
		}
	}()
	change = Asked(k, v, found, f)
	return change
}

// Asked calls f, the argument of Compute, and returns its result. It panics if f is nil, or if the
// result is none of Keep, Store and Remove.
func Asked[V any](k *Kind, v *V, found bool, f func(v *V, found bool) freehold.Change) freehold.Change {
	if f == nil {
		arg.Panicf(k.Type+".Compute", "f is nil")
	}
	change := f(v, found)
	if change > freehold.Remove {
		arg.Panicf(k.Type+".Compute", "f returned the Change %d, want Keep, Store or Remove", change)
	}
	return change
}

// MayClose reports whether there is anything to close. It reports false for the zero value and
// after Close. It panics if the container is lent, or if it holds memory and its parent is
// closed.
func (b *Base) MayClose(k *Kind, holds bool) bool {
	if b.state == unmade || b.state == closed {
		return false
	}
	if b.state == lent {
		b.refuse(k, "Close")
	}
	if holds {
		owners.AskParent(k.Type+".Close", b.Parent)
	}
	return true
}

// Closed marks a container as closed. Its memory has been returned before.
func Closed[T any](c *T, b *Base) {
	b.state = closed
	b.cleanup.Stop()
	owners.Closed(c)
}

// Refused wraps a parent's error so that it matches [freehold.ErrOutOfMemory] too. It returns
// nil for nil.
func Refused(err error) error {
	if err == nil || errors.Is(err, freehold.ErrOutOfMemory) {
		return err
	}
	return fmt.Errorf("%w: %w", freehold.ErrOutOfMemory, err)
}
