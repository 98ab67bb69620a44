package owners

import (
	"runtime"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/freehold-go/freehold/internal/lockrank"
)

// A registry lists its owners in order of creation until Remove. It lists a weak owner until the
// collector has freed it.
func TestRegistry(t *testing.T) {
	var r Registry[owner, lockrank.Leaf]
	if all := r.All(); len(all) > 0 {
		t.Errorf("the zero value has %p", all)
	}
	var made []*owner
	var numbers []uint64
	for range 50 {
		o := &owner{}
		made = append(made, o)
		numbers = append(numbers, r.Add(o, len(made)%2 == 0))
	}
	r.Remove(numbers[7])
	r.Remove(numbers[7])
	if got, want := r.All(), slices.Delete(slices.Clone(made), 7, 8); !slices.Equal(got, want) {
		t.Errorf("%p, want %p", got, want)
	}
	runtime.KeepAlive(made)
	made = nil
	runtime.GC()
	if all := r.All(); len(all) != 25 || len(r.open) != 25 {
		t.Errorf("%d of %d owners are left, want the 25 that are not weak", len(all), len(r.open))
	}
}

// Remove waits until f of While has returned. f may call While for another owner. It is not called
// once Remove has begun.
func TestRegistryWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Registry[owner, lockrank.Leaf]
		first, second := r.Add(&owner{}, false), r.Add(&owner{}, false)
		removed := make(chan struct{})
		r.While(first, func() {
			r.While(second, func() {
				go func() {
					defer close(removed)
					r.Remove(first)
				}()
				synctest.Wait()
				select {
				case <-removed:
					t.Error("Remove has returned before f")
				default:
				}
				r.While(first, func() { t.Error("f is called after Remove has begun") })
			})
		})
		<-removed
	})
}
