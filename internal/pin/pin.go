// Pin: a place of its own for a goroutine, held by keeping it on its processor.
//
// A pinned goroutine is neither preempted nor moved, so it has what belongs to
// its processor to itself, without an atomic operation. portable.go is the
// other way.

//go:build !race && !freehold_portable

// Package pin gives goroutines places: small numbers, each held by one
// goroutine at a time. What a table keeps at a place belongs to its holder.
//
// While a goroutine holds a place it must not block, allocate on the Go heap,
// panic, take a lock, hold a second place or touch memory that may fault. Slow
// paths are a loop of enter, try, leave, with EnterAt from the second round on;
// the goroutine may get another place all the same.
//
// What stands at a place is taken away from its holder in two steps: take it
// out of the table, by an atomic swap, and Wait. After that nobody holds a
// place who could have seen it there.
package pin

import (
	"runtime"
	"sync"
	_ "unsafe" // for linkname
)

// Max is how many places there are: a place from Max on, which a machine with
// more processors has, is no place, and its holder has nothing to itself.
const Max = 1024

// Places are the places of one table; the zero value is ready.
type Places struct{}

// Enter returns the place that the goroutine holds until Leave.
func (*Places) Enter() int { return procPin() }

// EnterAt is Enter for the next try of a slow path. It returns the given place,
// where the try before was, if the build can choose and nobody holds it.
// Otherwise a slow path might fill one place and look for it at another.
func (*Places) EnterAt(int) int { return procPin() }

// Leave ends what Enter began.
func (*Places) Leave(int) { procUnpin() }

// All calls f. Where the build can, f holds all places; otherwise their holders may
// be at work, as with Each.
func (*Places) All(f func()) { f() }

// Each calls f for every place. Where the build can, f holds it; otherwise its
// holder may be at work, so f only reads, by atomic loads, and takes what it
// reads for a snapshot.
func (*Places) Each(f func(place int)) {
	for i := range Max {
		f(i)
	}
}

func (*Places) wait() {
	world.mu.Lock()
	defer world.mu.Unlock()
	runtime.ReadMemStats(&world.stats) // stops the world, for some 20 us
}

var world struct {
	mu    sync.Mutex
	stats runtime.MemStats
}

// procPin and procUnpin are on the runtime's list of names that it keeps for
// packages outside (go.dev/issue/67401).

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()
