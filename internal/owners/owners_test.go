package owners

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/internal/panics"
)

type owner struct{ memory [100]byte }

// made passes its own owner to then, on another goroutine: the test's stack does not refer to
// it.
func made(then func(*owner)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		o := &owner{}
		Watch(o, "owners.owner", "name")
		then(o)
	}()
	<-done
}

func drop(*owner) {}

// A dropped owner is reported, on the writer at once and in All. Closed and reachable owners are
// not.
func TestDroppedOwner(t *testing.T) {
	var out strings.Builder
	defer WatchTo(&out)()
	made(Closed[owner])
	var kept *owner
	made(func(o *owner) { kept = o })
	Collect()
	if out.Len() > 0 || len(All()) > 0 {
		t.Errorf("%s%v", out.String(), All())
	}
	made(drop)
	Collect()
	Collect()
	text, all := out.String(), All()
	if !strings.HasPrefix(text, `freehold: owners.owner "name" was dropped without Close, made at:`+"\n") {
		t.Errorf("%s", text)
	}
	if len(all) != 1 || all[0].Kind != "owners.owner" || all[0].Name != "name" || all[0].Count != 1 {
		t.Errorf("%+v", all)
	}
	for range 3 {
		made(drop)
	}
	Collect()
	sum := 0
	for _, d := range All() {
		sum += d.Count
	}
	if n := strings.Count(out.String(), "was dropped"); n != len(All()) || sum != 4 {
		t.Errorf("%d reports of %+v", n, All())
	}
	runtime.KeepAlive(kept)
	Closed(kept)
	Closed(kept)
}

// An owner that the collector closes is listed apart from leaks, and not written.
func TestOwnerThatTheCollectorCloses(t *testing.T) {
	var out strings.Builder
	defer WatchTo(&out)()
	made(func(o *owner) { Collects(o) })
	made(drop)
	Collect()
	all := All()
	if len(all) != 2 || all[0].Collected == all[1].Collected || strings.Count(out.String(), "was dropped") != 1 {
		t.Errorf("%+v, %s", all, out.String())
	}
}

// An owner is reported once, by its cleanup or by Collect, whichever is first. If a new owner
// has the address of a watched one, the old owner was dropped.
func TestOwnerIsReportedOnce(t *testing.T) {
	defer WatchTo(new(strings.Builder))()
	a, b := &watch{kind: "x.A"}, &watch{kind: "x.B", name: "b"}
	add(8, a)
	add(8, b)
	end(8, a)
	if all := All(); len(all) != 1 || all[0].Kind != "x.A" || all[0].Count != 1 {
		t.Errorf("%+v", all)
	}
	end(8, b)
	end(8, b)
	closed(8)
	if all := All(); len(all) != 2 || all[1].String() != `x.B "b"` || all[1].Count != 1 || all[0].String() != "x.A" {
		t.Errorf("%v", all)
	}
}

// Open has the owners of a kind that are neither closed nor dropped, equal ones once.
func TestOpenOwners(t *testing.T) {
	defer WatchTo(new(strings.Builder))()
	kept := []*owner{{}, {}, {}, {}}
	for i, o := range kept {
		Watch(o, []string{"owners.owner", "owners.other"}[i/3], []string{"b", "a", "b", "c"}[i])
	}
	var got []string
	for _, o := range Open("owners.owner") {
		got = append(got, fmt.Sprint(o, o.Count))
	}
	if want := []string{`owners.owner "a" 1`, `owners.owner "b" 2`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, o := range kept {
		Closed(o)
	}
	if got := Open("owners.owner"); len(got) > 0 {
		t.Errorf("%v are closed", got)
	}
}

// CollectQuietly finds what Collect does, and writes nothing.
func TestCollectQuietly(t *testing.T) {
	var out strings.Builder
	defer WatchTo(&out)()
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // an earlier collection would report it
	made(drop)
	CollectQuietly()
	if len(All()) != 1 || out.Len() > 0 {
		t.Errorf("%v, %q", All(), out.String())
	}
}

// When the list is full, dropped owners count as "(other)".
func TestManyDroppedOwners(t *testing.T) {
	var out strings.Builder
	defer WatchTo(&out)()
	for i := range uintptr(maxDropped + 9) {
		add(i, &watch{kind: "x.A", name: fmt.Sprint(i)})
		end(i, owners.open[i])
	}
	all := All()
	if last := all[len(all)-1]; len(all) != maxDropped || last.Kind != others || last.Count != 10 || strings.Count(out.String(), "dropped") != maxDropped {
		t.Errorf("%d, the last %+v", len(all), last)
	}
}

// Without leak in FREEHOLD_DEBUG no owner is watched.
func TestOwnersAreNotWatched(t *testing.T) {
	var out strings.Builder
	restore := WatchTo(&out)
	on.Store(false)
	made(drop)
	Collect()
	if out.Len() > 0 || len(All()) > 0 || On() || len(owners.open) > 0 {
		t.Errorf("%s%v", out.String(), All())
	}
	restore()
}

func BenchmarkWatch(b *testing.B) {
	for _, watched := range []bool{false, true} {
		b.Run(fmt.Sprintf("on=%t", watched), func(b *testing.B) {
			defer WatchTo(new(strings.Builder))()
			on.Store(watched)
			var o owner
			for b.Loop() {
				Watch(&o, "owners.owner", "")
				Closed(&o)
			}
		})
	}
}

// closedParent panics in Alloc.
type closedParent struct{ message any }

func (p closedParent) Alloc(int, int) ([]byte, error) { panic(p.message) }
func (p closedParent) Free([]byte)                    {}

func TestAskParentPanicsInTheNameOfTheCall(t *testing.T) {
	for message, want := range map[any]string{
		"freehold: Heap.Alloc: heap is closed: again": "freehold: Map.Close: heap is closed: again",
		"freehold: closed":                            "freehold: closed",
		"mine: closed":                                "mine: closed",
		1:                                             "int: 1",
	} {
		panics.Want(t, want, func() { AskParent("Map.Close", closedParent{message}) })
	}
}
