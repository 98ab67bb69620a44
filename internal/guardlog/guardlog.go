// Guardlog: a record of each guarded block, in shared memory.
//
// The log is one range of memory that another process can map by its file:
//
//	| header | record 1 | record 2 | ... | table of stacks |
//
// A record belongs to a run of pages. It describes the run's block, or the last one if the run
// is free. So after a fault, another process can still tell which block was hit and who
// allocated and freed it: see package monitor. Where the system has no shared memory, the log
// is private to this process.
//
// The heap that owns the run writes the record under a lock of its own. Readers need no lock:
// they look up addresses that fault, and no heap changes the record of such a run meanwhile.

// Package guardlog keeps the records of guarded blocks, outside of the Go heap and in
// memory that another process can read.
package guardlog

import (
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/lockrank"
	"github.com/freehold-go/freehold/internal/stacks"
	"github.com/freehold-go/freehold/internal/vm"
)

// A State is the state of a block.
type State uint32

const (
	unused State = iota
	Live
	Freed
	Closed // its heap was closed
)

// maxName is the number of bytes of a heap's name that a record keeps.
const maxName = 40

const (
	maxRecords  = 1 << (14 + 4*(^uintptr(0)>>63))
	recordBytes = unsafe.Sizeof(record{})
	headerBytes = 64
	stacksAt    = (headerBytes + maxRecords*recordBytes + 1<<16 - 1) &^ (1<<16 - 1)
	logBytes    = stacksAt + (stacks.Bytes+1<<16-1)&^(1<<16-1)
)

// header begins a log.
type header struct {
	records atomic.Uint32 // number of records that have an ID
	anchor  uint64        // address of the function anchor in the process that writes
}

// record is a run and its block.
type record struct {
	base, bytes uint64 // the run
	addr, size  uint64 // the block
	state       State
	alloc, free stacks.ID
	nameLen     uint32
	name        [maxName]byte // of the heap
}

// Log is a log in memory.
type Log struct {
	at     atomic.Uintptr // 0 without memory
	stacks stacks.Table
}

// own is the log of this process.
var own struct {
	Log
	open sync.Once
	file *os.File // nil if the memory is private

	mu   lockrank.Mutex[lockrank.Leaf]
	idle []ID // records of closed heaps, oldest first; they are reused
}

// ID names a record of this process's log. All methods of ID 0, which is no record, are no-ops.
type ID uint32

// Open creates the log of this process if there is none, and returns its file. The file is nil
// if the system has no shared memory.
func Open() *os.File {
	own.open.Do(func() {
		at, file, err := shared(logBytes)
		if err != nil {
			at, err = private(logBytes)
		}
		if err != nil {
			return
		}
		own.file = file
		own.stacks.Use(at + stacksAt)
		own.at.Store(at)
		own.header().anchor = uint64(anchor())
	})
	return own.file
}

// private returns size bytes of zeros in memory of this process alone.
func private(size uintptr) (uintptr, error) {
	at, err := vm.Reserve(size, vm.PageBytes())
	if err == nil {
		err = vm.Commit(at, size)
	}
	return at, err
}

// New returns a record for the run of the given bytes at base, or 0 if the log is full.
func New(base, bytes uintptr) ID {
	if Open(); own.at.Load() == 0 {
		return 0
	}
	own.mu.Lock()
	defer own.mu.Unlock()
	h := own.header()
	id := ID(h.records.Load()) + 1
	switch {
	case id <= maxRecords:
		h.records.Store(uint32(id))
	case len(own.idle) > 0:
		id, own.idle = own.idle[0], own.idle[1:]
	default:
		return 0
	}
	*own.record(id) = record{base: uint64(base), bytes: uint64(bytes)}
	return id
}

// Allocated records a block of the run, its heap's name and the caller's stack.
func (id ID) Allocated(addr, size uintptr, heap string) {
	if id == 0 {
		return
	}
	r := own.record(id)
	r.addr, r.size, r.state = uint64(addr), uint64(size), Live
	r.alloc, r.free = own.stacks.Capture(0), stacks.Other
	r.nameLen = uint32(copy(r.name[:], heap))
}

// Freed records that the block is free, and the caller's stack.
func (id ID) Freed() {
	if id != 0 {
		r := own.record(id)
		r.state, r.free = Freed, own.stacks.Capture(0)
	}
}

// Closed records that the run's heap is closed. A later New may return the ID again, so the
// caller must forget it.
func (id ID) Closed() {
	if id == 0 {
		return
	}
	own.mu.Lock()
	defer own.mu.Unlock()
	own.record(id).state = Closed
	own.idle = append(own.idle, id)
}

func (l *Log) header() *header { return (*header)(vm.Pointer(l.at.Load())) }

// record returns the record of an ID that is not 0.
func (l *Log) record(id ID) *record {
	return (*record)(vm.Pointer(l.at.Load() + headerBytes + uintptr(id-1)*recordBytes))
}
