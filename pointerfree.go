// Pointer-free types: the only ones whose values may lie off-heap.
//
// A Go pointer in memory that the collector does not scan keeps nothing alive,
// so what it refers to is freed under it. The typed functions therefore check T
// first: by reflection once per type, and from then on by one load from a table
// of the types that have passed.

package freehold

import (
	"fmt"
	"reflect"
	"sync/atomic"
	"time"
	"unsafe"
)

// PointerFree reports whether values of type T may be stored off-heap: nil if T
// holds no Go pointers, else an error that names the first one by its path and
// what to use instead:
//
//	freehold: Node: field key is a string, which points into the Go heap; use freehold.String
//
// It is for containers that keep values of T in blocks of their own. The typed
// functions make this check themselves, and panic.
//
// A uintptr passes: that it does not hide the address of a Go value is the
// caller's word. So do the types of sync and sync/atomic that hold no pointer.
//
// The first call for a type walks it by reflection, in microseconds; once it has
// passed, a call takes 1 to 2 ns and allocates nothing.
func PointerFree[T any]() error {
	word := typeWord[T]()
	if passed[slotOf(word)].Load() == word {
		return nil
	}
	t := reflect.TypeFor[T]()
	if fault := inspect(word, t); fault != "" {
		return fmt.Errorf("freehold: %s: %s", typeName(t), fault)
	}
	return nil
}

// isKnown reports whether T is known to be pointer-free. It is inlined, which
// saves the typed functions a call.
func isKnown[T any]() bool {
	word := typeWord[T]()
	return passed[slotOf(word)].Load() == word
}

// mustBePointerFree panics in the name of the function fn if T holds Go pointers.
// It is for a T that is not known: a new one, or one that shares its slot.
func mustBePointerFree[T any](fn string) {
	t := reflect.TypeFor[T]()
	if fault := inspect(typeWord[T](), t); fault != "" {
		panic(fmt.Sprintf("freehold: %s[%s]: %s", fn, typeName(t), fault))
	}
}

// passed is a hash table with open addressing of the type words that are known
// to be pointer-free. Words are added and never removed, so a reader needs no
// lock: it sees 0 or a word that has passed.
//
// 4096 slots are more than the types of any program at hand. A type that finds
// them taken still works; it is walked at each call.
var passed [1 << passedBits]atomic.Uintptr

const passedBits = 12

// slotOf returns the slot where the search for word begins. Type words are
// multiples of a small power of two, so the multiplication spreads them.
func slotOf(word uintptr) uint32 { return uint32(word) * 0x9E3779B9 >> (32 - passedBits) }

// typeWord returns a number that stands for T in this process: the type word of
// an interface, which is the address of a descriptor that never moves.
func typeWord[T any]() uintptr {
	var v any = (*T)(nil)
	return *(*uintptr)(unsafe.Pointer(&v))
}

// inspect returns what is wrong with t, or "" if t is pointer-free, and then
// keeps word so that the next question about t finds it.
func inspect(word uintptr, t reflect.Type) string {
	first := slotOf(word)
	for i := range uint32(len(passed)) {
		slot := &passed[(first+i)%uint32(len(passed))]
		known := slot.Load()
		if known == 0 {
			if fault := faultOf(t, ""); fault != "" {
				return fault
			}
			if slot.CompareAndSwap(0, word) {
				return ""
			}
			known = slot.Load() // another goroutine took the slot, perhaps for t
		}
		if known == word {
			return ""
		}
	}
	return faultOf(t, "")
}

// faultOf returns a sentence about the first Go pointer in t, or "". The path
// leads to t from the type that was asked about.
func faultOf(t reflect.Type, path string) string {
	var what, use string
	switch k := t.Kind(); {
	case t == reflect.TypeFor[time.Time]():
		what, use = "a time.Time", "use its UnixNano"
	case k == reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			name := f.Name
			if path != "" {
				name = path + "." + name
			}
			if fault := faultOf(f.Type, name); fault != "" {
				return fault
			}
		}
		return ""
	case k == reflect.Array:
		if t.Len() == 0 {
			return ""
		}
		return faultOf(t.Elem(), path+"[0]")
	case k == reflect.String:
		what, use = "a string", "use freehold.String"
	case k == reflect.Slice:
		what = "a []" + typeName(t.Elem())
		use = "use freehold.Slice[" + typeName(t.Elem()) + "]"
	case k == reflect.Pointer:
		what = "a *" + typeName(t.Elem())
		use = "use freehold.Ptr[" + typeName(t.Elem()) + "]"
	case k == reflect.UnsafePointer:
		what, use = "an unsafe.Pointer", "use freehold.Ptr or a uintptr"
	case k == reflect.Interface:
		what, use = "an interface", "use a concrete type without Go pointers"
	case k == reflect.Map, k == reflect.Chan, k == reflect.Func:
		what, use = "a "+k.String(), "keep it in a Go slice and store its index"
	default: // numbers and bool
		return ""
	}
	return fmt.Sprintf("%s is %s, which points into the Go heap; %s", subject(path), what, use)
}

// subject words a path for the head of a sentence.
func subject(path string) string {
	switch {
	case path == "":
		return "it"
	case path[0] == '[':
		return "element " + path
	}
	return "field " + path
}

// typeName returns t's name as its own package writes it.
func typeName(t reflect.Type) string {
	if name := t.Name(); name != "" {
		return name
	}
	return t.String()
}
