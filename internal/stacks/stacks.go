// Stacks: an append-only hash set of call stacks.
//
//	index   hash, label -> ID     open addressing; 0 is an empty place
//	heads   ID -> hash, label, its words
//	words   | stack 1 | stack 2 | ...     program counters, the innermost first
//
// Capture hashes the return addresses on the stack (walk) and looks the hash up. Only for a
// new hash does it ask the runtime for the program counters: those include inlined calls and
// take 20 times as long. Equal return addresses have equal program counters. Two stacks whose
// 64-bit hashes collide count as one.
//
// Relabel adds a head that shares the words of the original.
//
// Stacks are never removed, so readers need no lock: an ID enters the index after its head and
// words are written.

// Package stacks keeps call stacks off the Go heap, in bounded memory.
package stacks

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/lockrank"
	"github.com/freehold-go/freehold/internal/vm"
)

// An ID names a stack with a label in a [Table].
type ID uint32

// Other is the ID of stacks for which the table has no room. It has no program counters
// and label 0.
const Other ID = 0

const (
	// Max is the number of IDs, Other included.
	Max = 1 << 16

	// MaxFrames is the number of innermost frames that are kept of a stack.
	MaxFrames = 128

	indexLen = 2 * Max
	maxWords = 32 * Max // program counters of all stacks

	// Bytes is the memory of a table.
	Bytes = tableBytes

	wordBytes  = unsafe.Sizeof(uintptr(0))
	indexBytes = indexLen * unsafe.Sizeof(ID(0))
	headBytes  = Max * unsafe.Sizeof(head{})
	tableBytes = indexBytes + headBytes + maxWords*wordBytes
)

// head describes a stack.
type head struct {
	hash  uint64 // of the return addresses
	at    uint32 // index of its first word
	n     uint32 // number of words
	label uint32
	_     uint32
}

// Table is a set of stacks. The zero value is empty and ready. The first Capture reserves 18
// MiB of addresses for the life of the process; only the used part takes memory. All methods
// are safe for concurrent use.
type Table struct {
	memory atomic.Uintptr // address of the index, then heads and words; 0 before the first stack

	mu    lockrank.Mutex[lockrank.Leaf] // held while a stack is added
	n     uint32                        // IDs in use, Other included
	words uint32
	full  atomic.Bool
}

// Capture returns the ID of the caller's stack with the label. The same stack with
// another label has another ID. If there is no room or no memory, it returns Other.
func (t *Table) Capture(label uint32) ID {
	hash := walk()
	if hash == 0 {
		var pcs [MaxFrames]uintptr
		hash = hashOf(pcs[:runtime.Callers(2, pcs[:])])
	}
	if id := t.find(hash, label); id != Other {
		return id
	}
	return t.add(hash, label)
}

// Relabel returns the ID of a stack with another label. If there is no room, it returns
// Other.
func (t *Table) Relabel(id ID, label uint32) ID {
	if id == Other {
		return Other
	}
	h := *t.head(id)
	if to := t.find(h.hash, label); to != Other || t.full.Load() {
		return to
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if to := t.find(h.hash, label); to != Other {
		return to
	}
	h.label = label
	return t.insert(h)
}

// Use gives t its memory: Bytes at addr. The memory is zero and t has captured nothing yet, or
// it is the table of another process, which t then only reads.
func (t *Table) Use(addr uintptr) {
	t.n = uint32(Other) + 1
	t.memory.Store(addr)
}

// Len returns the number of stacks, Other not included.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return int(max(t.n, 1) - 1)
}

// Stack returns the program counters of a stack, as runtime.Callers returns them, and its
// label. The slice is valid for the life of the process and must not be changed.
func (t *Table) Stack(id ID) (pcs []uintptr, label uint32) {
	if id == Other {
		return nil, 0
	}
	h := t.head(id)
	return unsafe.Slice(t.word(h.at), h.n), h.label
}

func (t *Table) place(i uint64) *uint32 {
	return (*uint32)(vm.Pointer(t.memory.Load() + uintptr(i%indexLen)*unsafe.Sizeof(ID(0))))
}

func (t *Table) head(id ID) *head {
	return (*head)(vm.Pointer(t.memory.Load() + indexBytes + uintptr(id)*unsafe.Sizeof(head{})))
}

func (t *Table) word(i uint32) *uintptr {
	return (*uintptr)(vm.Pointer(t.memory.Load() + indexBytes + headBytes + uintptr(i)*wordBytes))
}

// find returns the stack with the hash and the label, or Other.
func (t *Table) find(hash uint64, label uint32) ID {
	if t.memory.Load() == 0 {
		return Other
	}
	for i := mix(hash, uintptr(label)); ; i++ { // half of the places are empty
		id := ID(atomic.LoadUint32(t.place(i)))
		if id == Other {
			return Other
		}
		if h := t.head(id); h.hash == hash && h.label == label {
			return id
		}
	}
}

// add adds the caller's stack unless another goroutine has just done so.
//
//go:noinline
func (t *Table) add(hash uint64, label uint32) ID {
	if t.full.Load() {
		return Other
	}
	var pcs [MaxFrames]uintptr
	n := uint32(runtime.Callers(2, pcs[:]))
	t.mu.Lock()
	defer t.mu.Unlock()
	if id := t.find(hash, label); id != Other {
		return id
	}
	if !t.open() {
		return Other
	}
	if t.words+n > maxWords {
		t.full.Store(true)
		return Other
	}
	copy(unsafe.Slice(t.word(t.words), n), pcs[:n])
	id := t.insert(head{hash: hash, at: t.words, n: n, label: label})
	if id != Other {
		t.words += n
	}
	return id
}

// insert adds a head whose words are already written. It returns the ID, or Other if there is
// no room. mu is held.
func (t *Table) insert(h head) ID {
	if t.n == Max {
		t.full.Store(true)
		return Other
	}
	id := ID(t.n)
	*t.head(id) = h
	t.n++
	i := mix(h.hash, uintptr(h.label))
	for *t.place(i) != uint32(Other) {
		i++
	}
	atomic.StoreUint32(t.place(i), uint32(id))
	return id
}

// open allocates the table's memory if there is none yet. It reports whether there is now. mu
// is held.
func (t *Table) open() bool {
	if t.memory.Load() != 0 {
		return true
	}
	size := vm.RoundUp(tableBytes, vm.PageBytes())
	at, err := vm.Reserve(size, vm.PageBytes())
	if err != nil || vm.Commit(at, size) != nil {
		return false
	}
	vm.Name(at, size, "stacks")
	t.n = uint32(Other) + 1
	t.memory.Store(at)
	return true
}

// hashOf returns walk's hash of the given program counters.
func hashOf(pcs []uintptr) uint64 {
	hash := uint64(hashSeed)
	for _, pc := range pcs {
		hash = mix(hash, pc)
	}
	return hash
}

const (
	hashSeed = 0x243f6a8885a308d3
	hashMul  = 0x2545f4914f6cdd1d // odd
)

// mix adds a word to a hash. It multiplies, then swaps the halves: the high bits depend on
// all others, so they become the low ones.
func mix(hash uint64, word uintptr) uint64 {
	hash = (hash ^ uint64(word)) * hashMul
	return hash>>32 | hash<<32
}
