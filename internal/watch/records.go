// Records: the watched blocks of all heaps, by address.
//
//	chains   address -> record: size, red zone, stacks, weight, state
//	live     of a heap: records on a list
//	freed    of a heap: records of blocks in quarantine, the oldest first
//
// Guarded blocks that are not sampled are found by their runs. All other watched blocks have a
// record. A record is made before its block is watched. Without memory for a record the block is
// not watched.
//
// Records, chains and sums are off-heap, in pages of their own.

package watch

import (
	"unsafe"

	"github.com/freehold-go/freehold/internal/lockrank"
	"github.com/freehold-go/freehold/internal/pages"
	"github.com/freehold-go/freehold/internal/stacks"
	"github.com/freehold-go/freehold/internal/vm"
)

// record is a watched block.
type record struct {
	next   uintptr // in its chain
	after  uintptr // neighbours on its list
	before uintptr
	addr   uintptr
	size   uintptr   // the user's
	weight float64   // number of blocks that it represents; 0 if it is not sampled
	alloc  stacks.ID // of its allocation, and of its sum
	free   stacks.ID // of its Free; Other while it is live
	red    uint32    // bytes of the red zone behind it
	live   bool      // else in quarantine, on its way there, or being moved
}

const (
	recordBytes = unsafe.Sizeof(record{})
	minChains   = 1 << 10
	maxKept     = 1 << 8 // records without a block
)

// table has the records and the sums. mu guards all of it but stacks.
var table struct {
	stacks stacks.Table

	mu      lockrank.Mutex[lockrank.Records]
	memory  *pages.Heap
	chains  []uintptr // a power of two of them, by hash of the address
	records int       // in chains
	unused  uintptr   // records without a block, a list
	kept    int       // length of unused
	sums    []sum     // by ID of the stack
	labels  []label
	labelOf map[label]uint32
}

func locked(f func()) {
	table.mu.Lock()
	defer table.mu.Unlock()
	f()
}

// newRecord returns a record for a block that is about to be watched, or nil if there is no
// memory. mu is held.
func newRecord() *record {
	if table.memory == nil {
		table.memory = newMemory(0)
	}
	if table.sums == nil && !makeSums() || table.records >= len(table.chains) && !growChains() {
		return nil
	}
	addr := table.unused
	if addr != 0 {
		table.unused = recordAt(addr).next
		table.kept--
		return recordAt(addr)
	}
	addr, err := table.memory.AllocObject(recordBytes)
	if err != nil {
		return nil
	}
	return recordAt(addr)
}

// drop frees a record that is in no chain, or keeps it for the next block. mu is held.
func (r *record) drop() {
	if table.kept == maxKept {
		table.memory.FreeObject(r.self(), recordBytes)
		return
	}
	*r = record{next: table.unused}
	table.unused = r.self()
	table.kept++
}

// newMemory returns pages that go back to the system as soon as they are free. They are at most
// maxBytes, or any number if that is 0.
func newMemory(maxBytes int) *pages.Heap {
	p := &pages.Heap{}
	p.Init(pages.Options{Name: "watch", MaxBytes: maxBytes, Decay: -1, WholePages: true}, nil)
	return p
}

// array returns n zero values in memory, or nil if there is no memory. mu is held.
func array[T any](n int) []T {
	size := uintptr(n) * unsafe.Sizeof(*new(T))
	s, err := table.memory.AllocBlock(size, pages.WordBytes, true)
	if err != nil {
		return nil
	}
	return unsafe.Slice((*T)(vm.Pointer(s.Base)), n)
}

// growChains doubles the chains. Without memory for more it keeps the old ones, and reports false
// if there are none. mu is held.
func growChains() bool {
	old := table.chains
	chains := array[uintptr](max(2*len(old), minChains))
	if chains == nil {
		return len(old) > 0
	}
	table.chains, table.records = chains, 0
	for _, at := range old {
		for at != 0 {
			r := recordAt(at)
			at = r.next
			r.chain()
		}
	}
	if len(old) > 0 {
		at := uintptr(unsafe.Pointer(&old[0]))
		table.memory.FreeBlock(pages.SpanAt(at), at, uintptr(len(old))*pages.WordBytes)
	}
	return true
}

func recordAt(addr uintptr) *record { return (*record)(vm.Pointer(addr)) }
func (r *record) self() uintptr     { return uintptr(unsafe.Pointer(r)) }
func (r *record) user() []byte      { return block(r.addr, r.size) }
func (r *record) whole() []byte     { return block(r.addr, r.size+uintptr(r.red)) }
func (r *record) zone() []byte      { return block(r.addr+r.size, uintptr(r.red)) }

func block(addr, size uintptr) []byte { return unsafe.Slice((*byte)(vm.Pointer(addr)), size) }
func addrOf(b []byte) uintptr         { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// chainOf returns the chain of the record of the block at addr. mu is held.
func chainOf(addr uintptr) *uintptr {
	return &table.chains[int(uint64(addr)*0x9e3779b97f4a7c15>>32)&(len(table.chains)-1)]
}

// find returns the record of the block that begins at addr, or nil. mu is held.
func find(addr uintptr) *record {
	if len(table.chains) == 0 {
		return nil
	}
	for at := *chainOf(addr); at != 0; at = recordAt(at).next {
		if r := recordAt(at); r.addr == addr {
			return r
		}
	}
	return nil
}

// chain adds r to the chain of its address. mu is held.
func (r *record) chain() {
	chain := chainOf(r.addr)
	r.next, *chain = *chain, r.self()
	table.records++
}

// forget ends r's sample and drops r, which is on no list. mu is held.
func (r *record) forget() {
	r.end()
	r.unchain()
	r.drop()
}

// unchain undoes chain. mu is held.
func (r *record) unchain() {
	at := chainOf(r.addr)
	for *at != r.self() {
		at = &recordAt(*at).next
	}
	*at = r.next
	table.records--
}

// list is a list of records. table.mu guards it.
type list struct {
	head, tail uintptr
	bytes      uintptr // of their blocks, red zones included
}

// push adds r at the end.
func (l *list) push(r *record) {
	r.before, r.after = l.tail, 0
	if r.before != 0 {
		recordAt(r.before).after = r.self()
	} else {
		l.head = r.self()
	}
	l.tail = r.self()
	l.bytes += r.size + uintptr(r.red)
}

func (l *list) remove(r *record) {
	if r.before != 0 {
		recordAt(r.before).after = r.after
	} else {
		l.head = r.after
	}
	if r.after != 0 {
		recordAt(r.after).before = r.before
	} else {
		l.tail = r.before
	}
	l.bytes -= r.size + uintptr(r.red)
}

// each calls f for each record in order. f may remove it.
func (l *list) each(f func(*record)) {
	for at := l.head; at != 0; {
		r := recordAt(at)
		at = r.after
		f(r)
	}
}
