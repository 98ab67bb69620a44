package misuse

import (
	"reflect"
	"sync"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/btree"
	"github.com/freehold-go/freehold/cache"
	"github.com/freehold-go/freehold/cmalloc"
	"github.com/freehold-go/freehold/hashmap"
	"github.com/freehold-go/freehold/intern"
	"github.com/freehold-go/freehold/pool"
	"github.com/freehold-go/freehold/vector"
)

// A copy of an allocator or a container is a second owner of the same blocks. go vet reports the
// copy if a field has Lock and Unlock methods, as a mutex does.
func TestVetFindsCopies(t *testing.T) {
	for _, of := range []reflect.Type{
		reflect.TypeFor[freehold.Heap](),
		reflect.TypeFor[freehold.Limit](),
		reflect.TypeFor[alloctest.Allocator](),
		reflect.TypeFor[arena.Arena](),
		reflect.TypeFor[arena.Shared](),
		reflect.TypeFor[arena.Recycler](),
		reflect.TypeFor[pool.Blocks](),
		reflect.TypeFor[pool.Pool[int]](),
		reflect.TypeFor[pool.Cache[int]](),
		reflect.TypeFor[cmalloc.Heap](),
		reflect.TypeFor[hashmap.Map[int, int]](),
		reflect.TypeFor[hashmap.Shared[int, int]](),
		reflect.TypeFor[btree.Map[int, int]](),
		reflect.TypeFor[cache.Cache](),
		reflect.TypeFor[intern.Strings](),
		reflect.TypeFor[intern.Shared](),
		reflect.TypeFor[vector.Vector[int]](),
		reflect.TypeFor[vector.Chunked[int]](),
	} {
		if !holdsLock(of) {
			t.Errorf("nothing in a %v tells go vet that it must not be copied", of)
		}
	}
	for _, of := range []reflect.Type{reflect.TypeFor[freehold.Stats](), reflect.TypeFor[arena.Mark]()} {
		if holdsLock(of) {
			t.Errorf("a %v may be copied", of)
		}
	}
}

// holdsLock reports whether vet's copylocks check finds a lock in a type.
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
