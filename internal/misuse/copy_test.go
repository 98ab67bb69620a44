package misuse

import (
	"reflect"
	"sync"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/cmalloc"
)

// A copy of an allocator is a second owner of the same blocks. go vet reports one
// where a field has Lock and Unlock, as a mutex does.
func TestVetFindsCopies(t *testing.T) {
	for _, of := range []reflect.Type{
		reflect.TypeFor[freehold.Heap](),
		reflect.TypeFor[freehold.Cache](),
		reflect.TypeFor[freehold.Limit](),
		reflect.TypeFor[freehold.Counter](),
		reflect.TypeFor[freehold.Fallback](),
		reflect.TypeFor[freehold.Locked](),
		reflect.TypeFor[alloctest.Allocator](),
		reflect.TypeFor[cmalloc.Heap](),
	} {
		if !holdsLock(of) {
			t.Errorf("nothing in a %v tells go vet that it must not be copied", of)
		}
	}
	if of := reflect.TypeFor[freehold.Stats](); holdsLock(of) {
		t.Errorf("a %v may be copied", of)
	}
}

// holdsLock looks for what vet's copylocks looks for.
func holdsLock(of reflect.Type) bool {
	if reflect.PointerTo(of).Implements(reflect.TypeFor[sync.Locker]()) {
		return true
	}
	switch of.Kind() {
	case reflect.Array:
		return holdsLock(of.Elem())
	case reflect.Struct:
		for i := range of.NumField() {
			if holdsLock(of.Field(i).Type) {
				return true
			}
		}
	}
	return false
}
