// Pointer-free types: the only types that may be stored off-heap.
//
// The collector does not scan off-heap memory, so a Go pointer there keeps nothing
// alive. The typed functions therefore check T: once per type by reflection, and
// then by one load from a table of the types that have passed.

package freehold

import (
	"fmt"
	"reflect"
	"sync/atomic"
	"time"
	"unsafe"
)

// PointerFree returns nil if values of type T may be stored off-heap. If T holds a
// Go pointer, it returns an error with the path of the first one and a
// replacement:
//
//	freehold: Node: field key is a string, which points into the Go heap; use freehold.String
//
// It is for containers that store values of T in their own blocks. The typed
// functions make this check themselves, and panic.
//
// A uintptr passes: the caller guarantees that it is not the address of a Go
// value. The types of sync and sync/atomic without pointers pass too.
//
// The first call for a type inspects it by reflection. Once the type has passed, a
// call is one load from a table and allocates nothing (BenchmarkPointerFree).
func PointerFree[T any]() error {
	if isKnown[T]() {
		return nil
	}
	t := reflect.TypeFor[T]()
	if fault := inspect(typeWord[T](), t); fault != "" {
		return fmt.Errorf("freehold: %s: %s", typeName(t), fault)
	}
	return nil
}

// isKnown reports whether T is known to be pointer-free. It is inlined into the
// typed functions.
func isKnown[T any]() bool {
	word := typeWord[T]()
	return passed[slotOf(word)].Load() == word
}

// mustBePointerFree panics in the name of the function fn if T holds Go pointers.
// It is the slow path, for a T that isKnown does not find: a new type, or one that
// is not in its first slot.
func mustBePointerFree[T any](fn string) {
	t := reflect.TypeFor[T]()
	if fault := inspect(typeWord[T](), t); fault != "" {
		panic(fmt.Sprintf("freehold: %s[%s]: %s", fn, typeName(t), fault))
	}
}

// passed is a hash table with open addressing of the type words of pointer-free
// types. Words are never removed, so a reader needs no lock: it sees 0 or a word
// that has passed.
//
// Few programs store 4096 types off-heap. If the table is full, further types still
// work, and are inspected at each call.
var passed [1 << passedBits]atomic.Uintptr

const passedBits = 12

// slotOf returns the slot where the search for word begins. Type words are
// multiples of a small power of two, so the multiplication spreads them.
func slotOf(word uintptr) uint32 { return uint32(word) * 0x9E3779B9 >> (32 - passedBits) }

// typeWord returns a number that identifies T in this process: the type word of an
// interface, which is the address of a descriptor that never moves.
func typeWord[T any]() uintptr {
	var v any = (*T)(nil)
	return *(*uintptr)(unsafe.Pointer(&v))
}

// inspect returns the fault of t, or "" if t is pointer-free, and then adds word to
// passed.
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

// faultOf returns a sentence about the first Go pointer in t, or "". path is the
// path of fields from the inspected type to t.
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

// subject returns path as the subject of a sentence.
func subject(path string) string {
	switch {
	case path == "":
		return "it"
	case path[0] == '[':
		return "element " + path
	}
	return "field " + path
}

// typeName returns t's name without its package.
func typeName(t reflect.Type) string {
	if name := t.Name(); name != "" {
		return name
	}
	return t.String()
}
