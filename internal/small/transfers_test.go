// Transfers: the cache lines that processors take from each other, per Alloc and Free.
//
// The processors of a machine make one call at a time. A seam of package vm reports
// each off-heap address that the call turns into a pointer, and so the object of metadata at that
// address. A line of such an object was written if it has changed when the call returns; other
// addresses were read. The centrals and the page heap are on Go's heap, and their lines count if
// they have changed. The directory of lines_test.go turns these accesses into transfers.
//
// Not seen are the waits for locks, lines behind the first of an object that are only read, and a
// processor's own cache. A read of a line before a write counts once with it.

//go:build freehold_seams

package small

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/vm"
)

type lineKind int

const (
	statusLine lineKind = iota
	spanLine            // spans, and their bitmaps
	depotLine
	centralLine
	pageHeapLine
	magazineLine
	mapLine   // words of the page map
	blockLine // the first of a block
	numLineKinds
)

var lineKinds = [numLineKinds]string{"status", "span", "depot", "central", "page heap", "magazine", "map", "block"}

// simulation is a heap with simulated processors.
type simulation struct {
	m         *machine
	rand      *rand.Rand
	lines     *directory
	spans     map[uintptr]*Span // by the address of the span, and by that of its statuses
	spanWords uintptr           // the word of the first region's first page
	counts    bool              // else only blocks and their statuses are followed
	pairs     int
	live      int // bytes
	transfers [numLineKinds]int
	locks     map[*depot]*pressure

	objects []object  // that the call has accessed
	copies  []byte    // of them
	slabs   []uintptr // that the call has accessed: it may not have memory before
}

// pressure is how often a lock was taken by calls, and the transfers in these.
type pressure struct{ takes, transfers int }

// object is an object of metadata, with its bytes before the call.
type object struct {
	addr   uintptr
	before []byte
	read   uint64 // the lines of which an address was turned into a pointer
}

func newSimulation(t testing.TB, processors int) *simulation {
	stocked, empty := leastStocked, leastEmpty
	leastStocked, leastEmpty = max(4, processors/2), max(2, processors/4)
	t.Cleanup(func() { leastStocked, leastEmpty = stocked, empty })
	s := &simulation{rand: rand.New(rand.NewPCG(uint64(processors), 0)),
		lines: newDirectory(processors), spans: map[uintptr]*Span{}, locks: map[*depot]*pressure{},
		objects: make([]object, 0, 4<<10), copies: make([]byte, 0, 4<<20), slabs: make([]uintptr, 0, 4<<10),
	}
	t.Cleanup(SetHomes(homesFor(processors), func(slot int) int { return slot }))
	s.m = newMachine(t, pages.Options{}, processors)
	s.free(0, s.alloc(0, 8)) // so that there is a region
	defer func() { vm.Accessed = nil }()
	vm.Accessed = func(addr uintptr) { s.spanWords = addr }
	pages.Addresses.First.Span(pages.Addresses.First.Base)
	return s
}

// alloc allocates a block on processor p, and writes to it.
func (s *simulation) alloc(p, size int) (b []byte) {
	f := func() { b, _ = s.m.processors[p].tryAlloc(size) }
	if s.counts {
		s.observe(p, ClassFor(size, 8), f)
	} else {
		f()
		s.lines.access(p, lookUp(AddrOf(b), s.m.mapID), true)
	}
	if sp := SpanAt(AddrOf(b)); s.spans[sp.statuses] != sp {
		s.spans[sp.Addr()], s.spans[sp.statuses] = sp, sp
	}
	s.access(p, blockLine, AddrOf(b), true)
	s.live += size
	return b
}

// free reads a block on processor p, and frees it.
func (s *simulation) free(p int, b []byte) {
	s.access(p, blockLine, AddrOf(b), false)
	f := func() { s.m.processors[p].free(b) }
	if s.counts {
		s.observe(p, SpanAt(AddrOf(b)).class, f)
	} else {
		s.lines.access(p, lookUp(AddrOf(b), s.m.mapID), true)
		f()
	}
	s.pairs++
	s.live -= len(b)
}

// depotAddr returns an address for a depot that is the same in each run.
func (s *simulation) depotAddr(d *depot) uintptr {
	for i, x := range s.m.homes.all {
		if d == &x.depots[d.class] {
			return 1<<47 + uintptr(i*NumClasses+int(d.class))*lineBytes
		}
	}
	panic("no depot of the machine")
}

func (s *simulation) access(p int, kind lineKind, addr uintptr, write bool) {
	if s.lines.access(p, addr, write) {
		s.transfers[kind]++
	}
}

// observe calls f for processor p, and counts the transfers of its accesses.
func (s *simulation) observe(p int, class uint8, f func()) {
	s.objects, s.copies, s.slabs = s.objects[:0], s.copies[:0], s.slabs[:0]
	transfers := s.all()
	locked := &pressure{}
	onDepot = func(at *depot, lock bool) {
		s.access(p, depotLine, s.depotAddr(at), lock)
		if lock {
			if locked = s.locks[at]; locked == nil {
				locked = &pressure{}
				s.locks[at] = locked
			}
			locked.takes++
		}
	}
	defer func() { onDepot = nil }()
	central, below := &s.m.central[class], &s.m.below
	ours := []object{s.copyOf(unsafe.Pointer(central), unsafe.Sizeof(*central)), s.copyOf(unsafe.Pointer(below), unsafe.Sizeof(*below))}
	vm.Accessed = s.accessed
	f()
	vm.Accessed = nil
	for i, o := range ours {
		o.eachLine(func(at uintptr, changed, _ bool) {
			if changed {
				s.access(p, centralLine+lineKind(i), at-uintptr(unsafe.Pointer(s.m))+1<<46, true)
			}
		})
	}
	for _, at := range s.slabs {
		s.access(p, pageHeapLine, at, true)
	}
	for _, o := range s.objects {
		o.eachLine(func(at uintptr, changed, read bool) {
			if changed || read {
				s.access(p, s.kindOf(o, at), at, changed)
			}
		})
	}
	locked.transfers += s.all() - transfers
}

// all returns the transfers of all kinds.
func (s *simulation) all() (n int) {
	for _, transfers := range s.transfers {
		n += transfers
	}
	return n
}

// accessed notes an access of the current call. It allocates nothing.
func (s *simulation) accessed(addr uintptr) {
	if addr == 0 || pages.Addresses.First.Holds(addr) || addr == sentinelTop()-entryBytes || addr == sentinel.entry.Status {
		return
	}
	if addr%pages.SlabBytes == 0 && !s.isTable(addr) {
		s.slabs = append(s.slabs, addr)
		return
	}
	base, size := s.objectAt(addr)
	read := uint64(1) << ((addr - base) / lineBytes)
	for i := range s.objects {
		if s.objects[i].addr == base {
			s.objects[i].read |= read
			return
		}
	}
	o := s.copyOf(pointerTo(base), size)
	o.read = read
	s.objects = append(s.objects, o)
	if s.isWord(addr, s.spanWords) {
		if span := *(*uintptr)(pointerTo(addr)); span != 0 {
			s.accessed(span) // the word is a pointer already
		}
	}
}

// objectAt returns the object of metadata that has addr, a line of a table.
func (s *simulation) objectAt(addr uintptr) (base, size uintptr) {
	const header = 64 // of a slab: see metadata.go of package pages
	slab := addr &^ (pages.SlabBytes - 1)
	if s.isTable(addr) {
		return addr &^ (lineBytes - 1), lineBytes
	}
	size = *(*uintptr)(pointerTo(slab + unsafe.Sizeof(slab)))
	return addr - (addr-slab-header)%size, size
}

func (s *simulation) isTable(addr uintptr) bool {
	return addr >= s.spanWords && addr < pages.Addresses.First.Base
}

// isWord reports whether addr is in the table of a word for each page that begins at table.
func (s *simulation) isWord(addr, table uintptr) bool {
	return addr-table < pages.Addresses.First.Size/pages.PageBytes*pages.WordBytes
}

// kindOf returns the kind of the line at addr, in o.
func (s *simulation) kindOf(o object, addr uintptr) lineKind {
	switch sp := s.spans[o.addr]; {
	case s.isWord(addr, s.spanWords), s.isWord(addr, uintptr(unsafe.Pointer(pages.Addresses.First.PageWord(0)))):
		return mapLine
	case s.isTable(addr):
		return pageHeapLine
	case sp == nil && len(o.before) != pages.SpanBytes:
		return magazineLine
	case sp == nil: // of a free run
		return pageHeapLine
	case sp.Addr() != o.addr && addr < uintptr(sp.free):
		return statusLine
	}
	return spanLine
}

// copyOf returns an object with a copy of the size bytes at p.
func (s *simulation) copyOf(p unsafe.Pointer, size uintptr) object {
	n := len(s.copies)
	s.copies = append(s.copies, unsafe.Slice((*byte)(p), size)...)
	return object{addr: uintptr(p), before: s.copies[n:]}
}

// eachLine calls f with each line of o.
func (o object) eachLine(f func(at uintptr, changed, read bool)) {
	now := unsafe.Slice((*byte)(pointerTo(o.addr)), len(o.before))
	for i := 0; i < len(now); {
		next := min(i+lineBytes-int(o.addr+uintptr(i))%lineBytes, len(now))
		f(o.addr+uintptr(i), string(now[i:next]) != string(o.before[i:next]), o.read>>(i/lineBytes)&1 != 0)
		i = next
	}
}

// pointerTo is vm.Pointer without the seam.
func pointerTo(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

// A load is what n processors do. run returns a function in which each of them does one pair.
type load struct {
	name string
	run  func(s *simulation, n int) func()
}

var loads = []load{
	{"pair", func(s *simulation, n int) func() {
		return eachTurn(n, func(p int) { s.free(p, s.alloc(p, 64)) })
	}},
	{"local", local},
	{"mixed to 4,096 B", func(s *simulation, n int) func() {
		live, size := make([][2000][]byte, n), func() int { return 16 + s.rand.IntN(4081) }
		for p := range live {
			for i := range live[p] {
				live[p][i] = s.alloc(p, size())
			}
		}
		round := eachTurn(n, func(p int) {
			b := &live[p][s.rand.IntN(len(live[p]))]
			s.free(p, *b)
			*b = s.alloc(p, size())
		})
		rounds(400000/n, round)
		return round
	}},
	{"scatter", func(s *simulation, n int) func() {
		live, order, next := make([][2000][]byte, n), make([][]int, n), make([]int, n)
		for p := range order {
			order[p], next[p] = s.rand.Perm(len(live[p])), -s.rand.IntN(len(live[p]))
		}
		return eachTurn(n, func(p int) {
			const blocks = 2000
			for range 2 { // half a pair each
				switch i := next[p]; {
				case i < 0: // not yet, so that processors are at different points
				case i < blocks:
					live[p][i] = s.alloc(p, 64)
				default:
					s.free(p, live[p][order[p][i-blocks]])
				}
				if next[p]++; next[p] == 2*blocks {
					next[p] = 0
				}
			}
		})
	}},
	{"local, after server", func(s *simulation, n int) func() {
		rounds(40000/n, server(s, n))
		return local(s, n)
	}},
	{"producer and consumer", func(s *simulation, n int) func() { return handOver(s, n, 1, n/2) }},
	{"the same, far apart", func(s *simulation, n int) func() { return handOver(s, n, 2, 1) }},
	{"server", server},
	{"shared table", func(s *simulation, n int) func() {
		table := make([][]byte, 1<<20)
		for i := range table {
			table[i] = s.alloc(i%n, 32+s.rand.IntN(64))
		}
		return eachTurn(n, func(p int) {
			b := &table[s.rand.IntN(len(table))]
			s.free(p, *b)
			*b = s.alloc(p, 32+s.rand.IntN(64))
		})
	}},
}

// local has each processor build up to 3,000 blocks of its own, and free them down to 1,000.
func local(s *simulation, n int) func() {
	live, grows := make([][][]byte, n), make([]bool, n)
	for p := range live {
		for range 1000 + s.rand.IntN(2000) {
			live[p] = append(live[p], s.alloc(p, s.mixedSize()))
		}
	}
	return eachTurn(n, func(p int) {
		for range 2 { // half a pair each
			if n := len(live[p]); n <= 1000 || n >= 3000 {
				grows[p] = n <= 1000
			}
			if grows[p] {
				live[p] = append(live[p], s.alloc(p, s.mixedSize()))
				continue
			}
			last := len(live[p]) - 1
			b := &live[p][s.rand.IntN(last+1)]
			s.free(p, *b)
			*b, live[p] = live[p][last], live[p][:last]
		}
	})
}

// handOver has n/2 processors, so far apart, allocate blocks that others free, so far from them.
func handOver(s *simulation, n, apart, far int) func() {
	queues := make([][][]byte, n/2)
	return eachTurn(n/2, func(i int) {
		p, q := i*apart, &queues[i]
		if *q = append(*q, s.alloc(p, 64)); len(*q) > 100 {
			s.free(p+far, (*q)[0])
			*q = (*q)[1:]
		}
	})
}

// server has each processor end a request of another one, and begin another in its place.
func server(s *simulation, n int) func() {
	requests := make([][100][]byte, n)
	for p := range requests {
		for i := range requests[p] {
			requests[p][i] = s.alloc(p, s.mixedSize())
		}
	}
	return eachTurn(n, func(p int) {
		b := &requests[s.rand.IntN(n)][s.rand.IntN(100)]
		s.free(p, *b)
		*b = s.alloc(p, s.mixedSize())
	})
}

// mixedSize returns a size of 16 to 1,039 bytes.
func (s *simulation) mixedSize() int { return 16 + s.rand.IntN(1024) }

// eachTurn returns a function that calls f for each of n processors.
func eachTurn(n int, f func(p int)) func() {
	return func() {
		for p := range n {
			f(p)
		}
	}
}

func rounds(n int, round func()) {
	for range n {
		round()
	}
}

// figures are the results of a load.
type figures struct {
	by    [numLineKinds]float64 // transfers per pair
	all   float64
	takes float64 // of the lock of a class that is taken most, per 1,000 pairs
	held  float64 // transfers each
	taken float64 // bytes of blocks out of their spans, for each live byte
	over  float64 // committed bytes for each live byte
}

// measure returns the figures of a load on n processors.
func (l load) measure(t testing.TB, n int) (f figures) {
	s := newSimulation(t, n)
	round := l.run(s, n)
	rounds(4000, round)
	s.counts = true
	rounds(20000/n, round) // the caches get their lines
	s.pairs, s.transfers = 0, [numLineKinds]int{}
	clear(s.locks)
	rounds(40000/n, round)
	pairs := float64(s.pairs)
	for i := range s.m.central {
		f.taken += float64(s.m.central[i].out) * float64(classes[i].size) / float64(s.live)
	}
	f.over = float64(s.m.below.CommittedNow()) / float64(s.live)
	for i, transfers := range s.transfers {
		f.by[i] = float64(transfers) / pairs
	}
	f.all = float64(s.all()) / pairs
	for _, lock := range s.locks {
		if takes := 1000 * float64(lock.takes) / pairs; takes > f.takes {
			f.takes, f.held = takes, float64(lock.transfers)/float64(lock.takes)
		}
	}
	return f
}

// TestTransfers prints the tables behind docs/design/heap.md. The columns of kinds and of transfers
// each are for the most processors.
func TestTransfers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 10 s")
	}
	processors := []int{2, 8, 32, 64}
	var transfers, takes strings.Builder
	fmt.Fprint(&transfers, "\n| load |")
	for _, n := range processors {
		fmt.Fprintf(&transfers, " %d |", n)
	}
	fmt.Fprint(&takes, transfers.String(), " transfers each |")
	for _, kind := range lineKinds {
		fmt.Fprintf(&transfers, " %s |", kind)
	}
	fmt.Fprint(&transfers, " taken | committed |")
	for _, l := range loads {
		var f figures
		fmt.Fprintf(&transfers, "\n| %s |", l.name)
		fmt.Fprintf(&takes, "\n| %s |", l.name)
		for _, n := range processors {
			f = l.measure(t, n)
			fmt.Fprintf(&transfers, " %.2f |", f.all)
			fmt.Fprintf(&takes, " %.2f |", f.takes)
		}
		for _, n := range f.by {
			fmt.Fprintf(&transfers, " %.2f |", n)
		}
		fmt.Fprintf(&transfers, " %.2f | %.2f |", f.taken, f.over)
		fmt.Fprintf(&takes, " %.1f |", f.held)
	}
	t.Log(transfers.String(), "\n", takes.String())
}

// Local loads transfer no more than they did.
func TestLocalLoadsStayLocal(t *testing.T) {
	for name, most := range map[string]float64{"pair": 0, "local": 0.75, "local, after server": 0.95, "scatter": 3.25} {
		i := slices.IndexFunc(loads, func(l load) bool { return l.name == name })
		if f := loads[i].measure(t, 64); f.all > most {
			t.Errorf("%s: %.3f transfers a pair, want %.2f at most", name, f.all, most)
		}
	}
}

// However many processors hand blocks over, few of them take the same lock: one, and another one
// that frees its blocks.
func TestLocksAreOfFewProcessors(t *testing.T) {
	for name, most := range map[string]float64{"producer and consumer": 2.5, "the same, far apart": 5} {
		i := slices.IndexFunc(loads, func(l load) bool { return l.name == name })
		if f := loads[i].measure(t, 64); f.takes > most {
			t.Errorf("%s: a lock is taken %.2f times in 1,000 pairs, want %.1f at most", name, f.takes, most)
		}
	}
}
