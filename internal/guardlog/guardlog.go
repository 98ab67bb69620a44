// Guardlog: what is known of each guarded block.
//
// The log is one range of memory, shared with whoever maps its file:
//
//	| header | record 1 | record 2 | ... | table of stacks |
//
// A record belongs to a run of pages, and describes its block, the last one if it is free.
// So after a fault, another process can still tell which block was hit and who allocated
// and freed it: see package monitor. Where the system has no memory that processes share,
// the log is this process's own.
//
// A record is written by the heap that has the run, under a lock of that heap's. Readers
// need no lock: they look at addresses that fault, so nobody works with their run.

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

// A State is what happened to a block.
type State uint32

const (
	unused State = iota
	Live
	Freed
	Closed // its heap was closed
)

// maxName is how much of a heap's name is kept.
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
	records atomic.Uint32 // with an ID so far
	anchor  uint64        // address of a function, for processes with the same code elsewhere
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
	file *os.File // nil if nobody can share it

	mu   lockrank.Mutex[lockrank.Leaf]
	idle []ID // records of closed heaps, the oldest first
}

// ID names a record of this process's log; 0 is none, for which all methods are no-ops.
type ID uint32

// Open makes the log of this process, unless it exists, and returns its file. The file is
// nil if there is no memory that processes can share.
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

// private is shared for the memory of this process alone.
func private(size uintptr) (uintptr, error) {
	at, err := vm.Reserve(size, vm.PageBytes())
	if err == nil {
		err = vm.Commit(at, size)
	}
	return at, err
}

// New returns a record for the run of so many bytes at base; 0 if there is no room.
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

// Allocated notes a block of the run, its heap's name, and the caller's stack.
func (id ID) Allocated(addr, size uintptr, heap string) {
	if id == 0 {
		return
	}
	r := own.record(id)
	r.addr, r.size, r.state = uint64(addr), uint64(size), Live
	r.alloc, r.free = own.stacks.Capture(0), stacks.Other
	r.nameLen = uint32(copy(r.name[:], heap))
}

// Freed notes that the block is free, and the caller's stack.
func (id ID) Freed() {
	if id != 0 {
		r := own.record(id)
		r.state, r.free = Freed, own.stacks.Capture(0)
	}
}

// Closed notes that the run's heap is closed. The ID may be that of another run from now
// on.
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
