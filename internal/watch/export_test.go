package watch

import (
	"fmt"
	"time"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/poison"
)

// The tests use heaps, whose package imports this one.

const (
	MaxSampleRate   = maxSampleRate
	MaxGuarded      = maxGuarded
	MaxMappedGuards = maxMappedGuards
	FillByte        = poison.Fill
)

var (
	Chance            = chance
	GuardUnit         = guardUnit
	MappedGuards      = &mappedGuards
	CanTellGoPointers = canTellGoPointers
	OtherHeap         = noLabel.heap
)

// Seed makes chance the same each time.
func Seed() { settings.seed.Store(1) }

// Kept returns how many records have no block.
func Kept() (n int) {
	locked(func() { n = table.kept })
	return n
}

// SetClock sets the clock of the budget. nil is the system's clock.
func SetClock(clock func() time.Time) {
	if now = clock; now == nil {
		now = time.Now
	}
}

// SetMemory sets where records are. It returns what undoes it.
func SetMemory(maxBytes int) (restore func()) {
	table.mu.Lock()
	defer table.mu.Unlock()
	memory, unused, kept := table.memory, table.unused, table.kept
	table.memory, table.unused, table.kept = newMemory(maxBytes), 0, 0
	return func() { table.memory, table.unused, table.kept = memory, unused, kept }
}

// FillChains makes the chains full, and leaves no memory for more of them nor for records but
// those without a block. It returns what undoes it.
func FillChains() (restore func()) {
	table.mu.Lock()
	defer table.mu.Unlock()
	memory, more := table.memory, len(table.chains)-table.records
	table.memory = newMemory(4096)
	table.records += more
	return func() {
		table.memory = memory
		table.records -= more
	}
}

// UseUpLabels leaves no room for labels. It returns what undoes it.
func UseUpLabels() (restore func()) {
	table.mu.Lock()
	defer table.mu.Unlock()
	was := table.labels
	table.labels = append(make([]label, 0, maxLabels), was...)[:maxLabels]
	return func() { table.labels = was }
}

// Count returns how many records h has of live blocks, of those in quarantine, and of how many
// bytes these are.
func (h *Heap) Count() (live, freed, bytes int) {
	table.mu.Lock()
	defer table.mu.Unlock()
	h.live.each(func(*record) { live++ })
	h.freed.each(func(*record) { freed++ })
	return live, freed, int(h.freed.bytes)
}

// Runs are the runs of a heap's guards.
type Runs struct {
	Segments []uintptr
	Uncarved pages.Range
	Waiting  guardCount
	Live     guardCount
	Large    guardCount
	Idle     bool // there are idle runs, or some in quarantine
}

func (h *Heap) Runs() Runs {
	g := &h.guards
	g.mu.Lock()
	defer g.mu.Unlock()
	return Runs{g.segments, g.uncarved, g.waiting, g.live, g.large, g.quarantine.Head != 0 || g.idle != [guardOrders]pages.List{}}
}

// NewGuarded returns a guarded block.
func (h *Heap) NewGuarded(size, align uintptr) []byte { return h.newGuarded(size, align) }

// SetGuardQuarantine bounds how many guarded blocks a heap has in quarantine, and their bytes
// of addresses. It returns what undoes it.
func SetGuardQuarantine(blocks int, bytes uintptr) (restore func()) {
	was := quarantineMax
	quarantineMax.blocks, quarantineMax.bytes = blocks, bytes
	return func() { quarantineMax = was }
}

// SetPatrol sets the bytes in quarantine that each Alloc checks at least, or 0 for none. It
// returns a function that undoes it.
func SetPatrol(bytes uintptr) (restore func()) {
	was := patrolBytes
	patrolBytes = bytes
	return func() { patrolBytes = was }
}

// OnResize makes the engine call f with each block before it resizes it.
func (h *Heap) OnResize(f func(b []byte)) { h.engine = resizing{h.engine, f} }

type resizing struct {
	Engine
	before func(b []byte)
}

func (e resizing) Resize(call string, b []byte, size int) ([]byte, bool) {
	e.before(b)
	return e.Engine.Resize(call, b, size)
}

// RefuseResize makes the engine call f and refuse each Resize.
func (h *Heap) RefuseResize(f func()) { h.engine = refusing{h.engine, f} }

type refusing struct {
	Engine
	before func()
}

func (e refusing) Resize(string, []byte, int) ([]byte, bool) {
	e.before()
	return nil, false
}

// The steps of a Free after take.
var (
	FreeTaken = (*Heap).quarantine
	HoldTaken = (*Heap).hold
	KeepTaken = (*Heap).keep
)

// FreeBeside calls f between take of the watched block b and another step of its Free.
func (h *Heap) FreeBeside(b []byte, f func(), step func(*Heap, *record)) {
	r := h.take("Heap.Free", b)
	f()
	step(h, r)
}

// Records returns how many records have a block.
func Records() (n int) {
	locked(func() { n = table.records })
	return n
}

// Pages are the heap's.
func (h *Heap) Pages() *pages.Heap { return h.pages }

// HoldsGuards reports whether the lock of the guards is held, and HoldsRecords the lock of the
// records.
func (h *Heap) HoldsGuards() bool { return isHeld(&h.guards.mu) }
func HoldsRecords() bool          { return isHeld(&table.mu) }

func isHeld(mu interface {
	TryLock() bool
	Unlock()
}) bool {
	free := mu.TryLock()
	if free {
		mu.Unlock()
	}
	return !free
}

// Verify verifies the records and the guards of h. No other goroutine uses h.
func (h *Heap) Verify() error {
	if err := h.live.verify(true); err != nil {
		return err
	}
	if err := h.freed.verify(false); err != nil {
		return err
	}
	if at := h.patrol.at; at != 0 && find(recordAt(at).addr) != recordAt(at) {
		return fmt.Errorf("the cursor is at a record of no block")
	}
	var guarded guardCount
	h.guards.eachRun(func(s *run) {
		if s.live {
			bytes, _ := h.engine.GoodSize(int(s.Size))
			guarded.add(1, uintptr(bytes))
		}
	})
	if guarded != h.guards.live {
		return fmt.Errorf("guarded is %+v, want %+v", h.guards.live, guarded)
	}
	return nil
}

func (l *list) verify(live bool) (err error) {
	table.mu.Lock()
	defer table.mu.Unlock()
	bytes := uintptr(0)
	l.each(func(r *record) {
		bytes += r.size + uintptr(r.red)
		s := runAt(r.addr)
		if find(r.addr) != r || r.live != live || s != nil && (!s.live || s.block != r.addr) {
			err = fmt.Errorf("record %+v is at its address: %v; live, want %v", *r, find(r.addr) == r, live)
		}
	})
	if bytes != l.bytes {
		err = fmt.Errorf("a list of %d bytes, want %d", l.bytes, bytes)
	}
	return err
}
