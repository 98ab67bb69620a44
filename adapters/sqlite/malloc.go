// Malloc: SQLite's allocations off-heap, by SQLITE_CONFIG_MALLOC.

// Package sqlite puts all memory of modernc.org/sqlite, which is SQLite translated to Go, on a
// freehold heap:
//
//	import freeholdsqlite "github.com/freehold-go/freehold/adapters/sqlite"
//
//	heap := freehold.NewHeap(&freehold.HeapOptions{Name: "sqlite", MaxBytes: 256 << 20})
//	if err := freeholdsqlite.Use(heap); err != nil { … } // before the first connection
//	db, err := sql.Open("sqlite", "file.db")
//
// Page caches, statements, rows and databases in memory are then blocks of the heap, and
// HeapOptions.MaxBytes limits all of them together. At the limit a statement fails with
// SQLITE_NOMEM, and the connection still works. Heap.Stats and profiles show SQLite's memory.
// Without this package SQLite's memory is from mmap, in size classes that are powers of two. No
// tool of Go shows that memory.
//
// When the last connection of the process is closed, the heap returns its free memory to the
// system, at most once a second. Before that, it keeps freed memory for HeapOptions.Decay.
//
// # Requirements
//
// The heap belongs to SQLite while the process runs: do not close it. Close rows, statements and
// connections, as ever.
//
// A program that imports modernc.org/sqlite/vec uses SQLite in its init. Call Use in the init of a
// package that Go initializes earlier: its import path sorts before modernc.org.
//
// The translated C library takes a little memory for each connection outside of the heap.
//
// Tests with -race need -gcflags=all=-d=checkptr=0. In race builds freehold's memory is Go memory,
// and checkptr stops translated C, which computes with addresses.
//
// The page cache needs no setting: its pages are blocks of the heap. A page of 4,096 bytes takes
// 4,608 with SQLite's header. A page cache of sqlite.RegisterPageCache could save a tenth at most.
//
// # When not to use it
//
// Databases with small caches gain nothing. PRAGMA cache_size may be limit enough. PRAGMA
// hard_heap_limit has no effect, with this package or without: modernc.org/sqlite is compiled with
// SQLITE_DEFAULT_MEMSTATUS=0.
package sqlite

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/freehold-go/freehold"
	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// ErrTooLate is returned by [Use] once SQLite has allocated: its blocks cannot move to another
// heap.
var ErrTooLate = errors.New("freehold: sqlite.Use: SQLite is in use already; call it before the first connection is opened")

var (
	mu   sync.Mutex // held by Use
	heap *freehold.Heap

	blocks  atomic.Int64 // live blocks of SQLite
	trimmed atomic.Int64 // time of the last trim, Unix ns

	// methods has the functions that SQLite calls. Use passes its address, so it must not be on the
	// stack, which may move.
	methods = sqlite3.Tsqlite3_mem_methods{
		FxMalloc:   function(malloc),
		FxFree:     function(free),
		FxRealloc:  function(realloc),
		FxSize:     function(size),
		FxRoundup:  function(roundUp),
		FxInit:     function(start),
		FxShutdown: function(shutdown),
	}
)

// Use makes SQLite allocate from h. Call it once, before any goroutine opens a connection; a
// further call with the same h is a no-op. It returns [ErrTooLate] if a connection was opened
// before or another heap is in use, and panics if h is nil.
func Use(h *freehold.Heap) error {
	if h == nil {
		panic("freehold: sqlite.Use: h is nil")
	}
	mu.Lock()
	defer mu.Unlock()
	if heap == h {
		return nil
	}
	tls := libc.NewTLS()
	defer tls.Close()
	const bytes = 16 // for the list of arguments
	args := tls.Alloc(bytes)
	defer tls.Free(bytes)
	if heap != nil || sqlite3.Xsqlite3_config(tls, sqlite3.SQLITE_CONFIG_MALLOC, libc.VaList(args, uintptr(unsafe.Pointer(&methods)))) != sqlite3.SQLITE_OK {
		return ErrTooLate
	}
	heap = h
	return nil
}

func malloc(_ *libc.TLS, n int32) uintptr {
	p := heap.Malloc(int(n))
	if p != nil {
		blocks.Add(1)
	}
	return uintptr(p)
}

func free(_ *libc.TLS, p uintptr) {
	heap.FreePointer(pointer(p))
	if blocks.Add(-1) == 0 {
		trim()
	}
}

// trim returns the heap's memory to the system. It is called when SQLite has no block left, as
// after the last connection is closed. It acts at most once a second, since the next connection
// takes memory again.
func trim() {
	now, last := time.Now().UnixNano(), trimmed.Load()
	if now-last > int64(time.Second) && trimmed.CompareAndSwap(last, now) {
		heap.Trim()
	}
}

func size(_ *libc.TLS, p uintptr) int32 { return int32(heap.UsableSize(pointer(p))) }

func realloc(_ *libc.TLS, p uintptr, n int32) uintptr {
	return uintptr(heap.ReallocPointer(pointer(p), int(n)))
}

// roundUp returns the size of the block for n bytes, or n if that size exceeds an int32.
func roundUp(_ *libc.TLS, n int32) int32 {
	if size := heap.GoodSize((int(n) + 15) &^ 15); size <= math.MaxInt32 {
		return int32(size)
	}
	return n
}

func start(_ *libc.TLS, _ uintptr) int32  { return sqlite3.SQLITE_OK }
func shutdown(_ *libc.TLS, _ uintptr)     {}
func pointer(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

// function returns f as translated C expects a function pointer: the second word of the interface.
func function(f any) uintptr { return (*[2]uintptr)(unsafe.Pointer(&f))[1] }
