package cache

import (
	"reflect"
	"runtime"
	"testing"

	"github.com/freehold-go/freehold"
)

// named returns the figures of the open caches with a name.
func named(name string) (all []Stats) {
	for _, st := range AllStats() {
		if st.Name == name {
			all = append(all, st)
		}
	}
	return all
}

// All open caches are in AllStats, in order of creation, until their Close.
func TestAllStats(t *testing.T) {
	one := newCache(t, Options{Name: t.Name()})
	two := newCache(t, Options{Name: t.Name(), MaxBytes: 2 * MinBytes})
	must(0, two.Set([]byte("k"), []byte("v")))
	get(t, two, "k", "v")
	if got, want := named(t.Name()), []Stats{one.Stats(), two.Stats()}; !reflect.DeepEqual(got, want) || got[1].Hits != 1 {
		t.Errorf("%+v, want %+v", got, want)
	}
	must(0, one.Set([]byte("k"), []byte("v")))
	one.Close()
	if st := one.Stats(); st.Len != 0 || st.Live != 0 || st.Dead != 0 || st.Reserved != 0 || st.Sets != 1 {
		t.Errorf("a closed cache: %+v", st)
	}
	if got := named(t.Name()); len(got) != 1 || got[0].Len != 1 {
		t.Errorf("after Close: %+v", got)
	}
}

// AllStats reads no memory of a cache whose parent was closed first, and does not keep that cache
// alive.
func TestAllStatsOfDroppedCaches(t *testing.T) {
	done := make(chan struct{})
	go func() { // on a stack of its own
		defer close(done)
		h := freehold.NewHeap(nil)
		c := New(h, &Options{Name: t.Name(), MaxBytes: MinBytes})
		must(0, c.Set([]byte("k"), []byte("v")))
		h.Close()
		if got := named(t.Name()); len(got) != 1 || got[0].Live == 0 || got[0].Len != 1 {
			t.Errorf("%+v", got)
		}
		runtime.KeepAlive(c)
	}()
	<-done
	runtime.GC()
	if got := named(t.Name()); len(got) != 0 {
		t.Errorf("a dropped cache is kept: %+v", got)
	}
}
