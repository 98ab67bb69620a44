// Registry: the open owners of one type.

package owners

import (
	"maps"
	"slices"
	"weak"

	"github.com/freehold-go/freehold/internal/lockrank"
)

// A Registry holds the open owners of one type, by number in order of creation. Rank is that of its
// lock. The zero value is empty.
type Registry[T, Rank any] struct {
	Mu   lockrank.Mutex[Rank] // held while Each calls its function
	open map[uint64]reference[T]
	made uint64
}

// reference is a pointer to an owner, or a weak one.
type reference[T any] struct {
	owner *T
	weak  weak.Pointer[T]
}

func (r reference[T]) get() *T {
	if r.owner != nil {
		return r.owner
	}
	return r.weak.Value()
}

// Add adds an owner and returns its number. A weak one leaves the registry also when the collector
// frees it.
func (r *Registry[T, Rank]) Add(owner *T, weakly bool) (number uint64) {
	ref := reference[T]{owner: owner}
	if weakly {
		ref = reference[T]{weak: weak.Make(owner)}
	}
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if r.open == nil {
		r.open = map[uint64]reference[T]{}
	}
	r.made++
	r.open[r.made] = ref
	return r.made
}

// Remove removes the owner of a number.
func (r *Registry[T, Rank]) Remove(number uint64) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	delete(r.open, number)
}

// Each calls f for each owner in order of creation. Add and Remove wait meanwhile, so f must not call
// them.
func (r *Registry[T, Rank]) Each(f func(*T)) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	for _, n := range slices.Sorted(maps.Keys(r.open)) {
		if owner := r.open[n].get(); owner != nil {
			f(owner)
		} else {
			delete(r.open, n)
		}
	}
}

// All returns the owners in order of creation. Add and Remove do not wait for what is done with them.
func (r *Registry[T, Rank]) All() (all []*T) {
	r.Each(func(owner *T) { all = append(all, owner) })
	return all
}
