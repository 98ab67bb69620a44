// Registry: the open owners of one type.

package owners

import (
	"maps"
	"slices"
	"sync"
	"weak"

	"github.com/freehold-go/freehold/internal/lockrank"
)

// A Registry holds the open owners of one type, numbered in order of creation. Rank is the rank
// of its lock. The zero value is empty.
type Registry[T, Rank any] struct {
	Mu   lockrank.Mutex[Rank] // held while Each calls its function
	open map[uint64]reference[T]
	made uint64
}

// reference is a strong or a weak pointer to an owner.
type reference[T any] struct {
	owner *T
	weak  weak.Pointer[T]
	users *sync.WaitGroup // calls of While; nil before the first
}

func (r reference[T]) get() *T {
	if r.owner != nil {
		return r.owner
	}
	return r.weak.Value()
}

// Add adds an owner and returns its number. If weakly, the registry does not keep the owner
// alive, and drops it once the collector has freed it.
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
	users := r.open[number].users
	delete(r.open, number)
	r.Mu.Unlock()
	if users != nil {
		users.Wait()
	}
}

// While calls f if the owner of a number has not been removed. Remove waits until f has returned.
// f runs without Mu, and may call While for another owner.
func (r *Registry[T, Rank]) While(number uint64, f func()) {
	if users := r.use(number); users != nil {
		defer users.Done()
		f()
	}
}

// use adds a user to the owner of a number. It returns nil if the owner has been removed.
func (r *Registry[T, Rank]) use(number uint64) *sync.WaitGroup {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	ref, open := r.open[number]
	if !open {
		return nil
	}
	if ref.users == nil {
		ref.users = new(sync.WaitGroup)
		r.open[number] = ref
	}
	ref.users.Add(1)
	return ref.users
}

// Each calls f for each owner in order of creation. It holds Mu, so f must not call Add or
// Remove.
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

// All returns the owners in order of creation. Unlike f of Each, its caller may use the registry.
func (r *Registry[T, Rank]) All() (all []*T) {
	r.Each(func(owner *T) { all = append(all, owner) })
	return all
}
