//go:build freehold_ranks && amd64

package lockrank

import (
	"sync"
	"testing"

	"github.com/freehold-go/freehold/internal/panics"
)

func TestOrderOfLocks(t *testing.T) {
	var (
		central, another Mutex[Central]
		homes            Mutex[Homes]
		depots           [2]Mutex[Depot]
		pages, below     Mutex[Pages]
		records          Mutex[Records]
		leaf             Mutex[Leaf]
	)
	for _, tt := range []struct {
		held []sync.Locker
		next sync.Locker
		want string
	}{
		{nil, &leaf, ""},
		{[]sync.Locker{&central, &pages, &records}, &leaf, ""},
		{[]sync.Locker{&pages, &records}, &below, ""},       // those of the records
		{[]sync.Locker{&homes, &depots[0]}, &depots[1], ""}, // those of all homes
		{[]sync.Locker{&depots[0]}, &depots[1], "lockrank: lockrank.Depot is taken under lockrank.Depot"},
		{[]sync.Locker{&homes, &depots[0], &central}, &depots[1], "lockrank: lockrank.Depot is taken under lockrank.Depot"},
		{[]sync.Locker{&depots[0]}, &homes, "lockrank: lockrank.Homes is taken under lockrank.Depot"},
		{[]sync.Locker{&pages}, &central, "lockrank: lockrank.Central is taken under lockrank.Pages"},
		{[]sync.Locker{&central, &leaf}, &pages, "lockrank: lockrank.Pages is taken under lockrank.Leaf"},
		{[]sync.Locker{&central}, &another, "lockrank: lockrank.Central is taken under lockrank.Central"},
		{[]sync.Locker{&pages, &records, &below}, &records, "lockrank: lockrank.Records is taken under lockrank.Records"},
	} {
		for _, l := range tt.held {
			l.Lock()
		}
		var other sync.WaitGroup // which holds nothing
		other.Go(func() {
			var central Mutex[Central]
			central.Lock()
			central.Unlock()
		})
		other.Wait()
		if got := panics.Of(func() { tt.next.Lock(); tt.next.Unlock() }); got != tt.want {
			t.Errorf("%T after %T: %q, want %q", tt.next, tt.held, got, tt.want)
		}
		for _, l := range tt.held { // in the order of the locks
			l.Unlock()
		}
	}
	if len(held.by[g()]) > 0 {
		t.Errorf("%v are held", held.by[g()])
	}
}

func TestTriedLocksCount(t *testing.T) {
	var space Mutex[Space]
	var pages Mutex[Pages]
	if !space.TryLock() || space.TryLock() {
		t.Fatal("a Mutex is locked once")
	}
	panics.Want(t, "lockrank: lockrank.Pages is taken under lockrank.Space", pages.Lock)
	space.Unlock()
	panics.Want(t, "lockrank: Unlock of *lockrank.Mutex...", space.Unlock)
}
