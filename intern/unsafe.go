// Unsafe: the package's conversions of addresses to pointers.
//
// Blocks of the parent do not move, and live until they are freed. Each address is loaded as a
// pointer from the variable that stores it, so no instruction converts it.

package intern

import (
	"encoding/binary"
	"unsafe"

	"github.com/freehold-go/freehold/internal/chunks"
)

const entryBytes = int(unsafe.Sizeof(entry{}))

func addrOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// bytesAt returns the size bytes at addr.
func bytesAt(addr uintptr, size int) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), size)
}

// textOf returns b as a string, without a copy. It is valid as long as b is, and until b changes.
func textOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// pointer returns the address of word i.
//
// Precondition: i < w.cap().
func (w *words) pointer(i uint32) unsafe.Pointer {
	chunk, at := chunks.Locate(uint(i), firstBits)
	return unsafe.Add(*(*unsafe.Pointer)(unsafe.Pointer(&w.chunks[chunk])), at*wordBytes)
}

// word returns word i. The precondition is as for pointer.
func (w *words) word(i uint32) *uint32 { return (*uint32)(w.pointer(i)) }

// record returns the record at an offset.
//
// Precondition: a record begins there, live or free.
func (s *store) record(at uint32) *record { return (*record)(s.records.pointer(at)) }

// text returns the string of r.
func (r *record) text() string {
	if r.size == isLong {
		l := (*longRecord)(unsafe.Pointer(r))
		addr := uintptr(join(l.addr))
		return unsafe.String(*(**byte)(unsafe.Pointer(&addr)), int(join(l.len)))
	}
	return unsafe.String(&r.first[0], int(r.size))
}

// has reports whether the string of r is text. If that has 8 to 16 bytes, it compares two words,
// without a call.
func (r *record) has(text string) bool {
	n := len(text)
	if n < 8 || n > 16 {
		return r.text() == text
	}
	if int(r.size) != n {
		return false
	}
	a, b := r.short(n), unsafe.Slice(unsafe.StringData(text), n)
	return binary.NativeEndian.Uint64(a) == binary.NativeEndian.Uint64(b) &&
		binary.NativeEndian.Uint64(a[n-8:]) == binary.NativeEndian.Uint64(b[n-8:])
}

// long returns r as a long record.
//
// Precondition: r has longWords words.
func (r *record) long() *longRecord { return (*longRecord)(unsafe.Pointer(r)) }

// short returns the bytes of a record of up to maxShort bytes.
//
// Precondition: r has room for n bytes.
func (r *record) short(n int) []byte { return unsafe.Slice(&r.first[0], n) }

// head returns the header of e's segment.
//
// Precondition: e has a segment.
func (e *entry) head() *head {
	return (*head)(unsafe.Add(*(*unsafe.Pointer)(unsafe.Pointer(&e.slots)), -headBytes))
}

// all returns the slots of e's segment. The precondition is as for head.
func (e *entry) all() []slot {
	return unsafe.Slice(*(**slot)(unsafe.Pointer(&e.slots)), e.head().total)
}

// slot returns slot i.
//
// Precondition: i is less than the segment's total. It holds for the slots that search visits.
func (e *entry) slot(i uint64) slot {
	return *(*slot)(unsafe.Add(*(*unsafe.Pointer)(unsafe.Pointer(&e.slots)), i*slotBytes))
}

// stride returns the slots from p on. The precondition is as for slot, for each of them.
func (e *entry) stride(p uint64) *[stride]slot {
	return (*[stride]slot)(unsafe.Add(*(*unsafe.Pointer)(unsafe.Pointer(&e.slots)), p*slotBytes))
}

// entriesAt returns n entries at addr.
func entriesAt(addr uintptr, n int) []entry {
	return unsafe.Slice(*(**entry)(unsafe.Pointer(&addr)), n)
}

func addrOfEntries(e []entry) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(e))) }

// addrOfSlots returns the address of slots in a Go variable.
func addrOfSlots(s []slot) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }

// rest returns the bytes of a record of size words without its first word.
func (s *store) rest(at, size uint32) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(s.records.pointer(at), wordBytes)), (size-1)*wordBytes)
}
