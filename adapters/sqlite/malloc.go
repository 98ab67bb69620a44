// Malloc: SQLite's allocations off-heap, by SQLITE_CONFIG_MALLOC.

// Package sqlite puts all memory of SQLite, as modernc.org/sqlite translates it to Go, on a freehold heap:
//
//	import freeholdsqlite "github.com/freehold-go/freehold/adapters/sqlite"
//
//	heap := freehold.NewHeap(&freehold.HeapOptions{Name: "sqlite", MaxBytes: 256 << 20})
//	if err := freeholdsqlite.Use(heap); err != nil { … } // before the first connection
//	db, err := sql.Open("sqlite", "file.db")
//
// Page caches, statements, rows and databases in memory are then blocks of the heap. HeapOptions.MaxBytes is a
// limit on all of them together: SQLite first frees pages of its caches, and then the statement fails with SQLITE_NOMEM, and the
// connection goes on. Heap.Stats and profiles show what SQLite has. By default it has memory from mmap, in
// size classes that are powers of two, that nothing shows and that has no limit but the process's.
//
// # What it takes
//
// The heap belongs to SQLite while the process runs: do not close it. Close rows, statements and connections, as ever.
//
// A program that imports modernc.org/sqlite/vec uses SQLite when it starts: call Use in the init of a package that is imported
// before, whose path sorts before modernc.org.
//
// Memory of the translated C library, a little for each connection, is not SQLite's and stays where it is.
//
// Tests with -race need -gcflags=all=-d=checkptr=0: the race detector sees freehold's memory because it is Go's then, and checkptr
// stops translated C, which computes with addresses.
//
// There is nothing to do for the page cache: its pages are blocks of the heap, of 4,608 bytes for a page of 4,096 with what SQLite
// has before it. sqlite.RegisterPageCache is for a page cache with a replacement policy of its own, and could save a tenth at most.
//
// # When not to use it
//
// Databases whose caches are small have nothing to gain. SQLite's own limits, PRAGMA cache_size and hard_heap_limit, may be
// limit enough.
package sqlite

import (
	"errors"
	"math"
	"sync"
	"unsafe"

	"github.com/freehold-go/freehold"
	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// ErrTooLate is returned by [Use] after SQLite has allocated: its memory cannot change hands.
var ErrTooLate = errors.New("freehold: sqlite.Use: SQLite is in use already; call it before the first connection is opened")

var (
	mu   sync.Mutex // held by Use
	heap *freehold.Heap

	// methods is what SQLite calls. It is not on the stack of Use, which may move.
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

// Use has SQLite allocate from h. Call it once, before any goroutine opens a connection; a further call with the same h is a
// no-op. It returns [ErrTooLate] if a connection was opened before or another heap is in use, and panics if h is nil.
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
	const bytes = 16 // of the list of arguments
	args := tls.Alloc(bytes)
	defer tls.Free(bytes)
	if heap != nil || sqlite3.Xsqlite3_config(tls, sqlite3.SQLITE_CONFIG_MALLOC, libc.VaList(args, uintptr(unsafe.Pointer(&methods)))) != sqlite3.SQLITE_OK {
		return ErrTooLate
	}
	heap = h
	return nil
}

func malloc(_ *libc.TLS, n int32) uintptr { return uintptr(heap.Malloc(int(n))) }
func free(_ *libc.TLS, p uintptr)         { heap.FreePointer(pointer(p)) }
func size(_ *libc.TLS, p uintptr) int32   { return int32(heap.UsableSize(pointer(p))) }

func realloc(_ *libc.TLS, p uintptr, n int32) uintptr {
	return uintptr(heap.ReallocPointer(pointer(p), int(n)))
}

// roundUp returns the size of the block that n bytes take, or n where that is more than SQLite's sizes can be.
func roundUp(_ *libc.TLS, n int32) int32 {
	if size := heap.GoodSize((int(n) + 15) &^ 15); size <= math.MaxInt32 {
		return int32(size)
	}
	return n
}

func start(_ *libc.TLS, _ uintptr) int32  { return sqlite3.SQLITE_OK }
func shutdown(_ *libc.TLS, _ uintptr)     {}
func pointer(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

// function returns what translated C takes for a pointer to the function f: the second word of the interface.
func function(f any) uintptr { return (*[2]uintptr)(unsafe.Pointer(&f))[1] }
