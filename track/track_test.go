package track_test

import (
	"fmt"
	"maps"
	"runtime"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/internal/test/child"
	"github.com/freehold-go/freehold/pool"
	"github.com/freehold-go/freehold/track"
)

func sampleAt(t *testing.T, rate int) {
	was := track.SetSampleRate(rate)
	t.Cleanup(func() { track.SetSampleRate(was) })
}

// names counts the names of heaps and tags. Their totals outlive a test, so each run needs new
// ones.
var names int

func newName(t *testing.T) string {
	names++
	return fmt.Sprint(t.Name(), " ", names)
}

// of returns the usage of one heap by the innermost function, without its package, and the
// number of stacks of each function.
func of(t *testing.T, heap string) (all map[string]track.Usage, stacks map[string]int) {
	all, stacks = map[string]track.Usage{}, map[string]int{}
	for _, u := range track.Profile() {
		if u.Heap == heap {
			f, _ := runtime.CallersFrames(u.Stack).Next()
			name := f.Function[strings.LastIndexByte(f.Function, '/')+1:]
			sum := all[name]
			sum.AllocObjects += u.AllocObjects
			sum.AllocBytes += u.AllocBytes
			sum.FreeObjects += u.FreeObjects
			sum.FreeBytes += u.FreeBytes
			all[name] = sum
			stacks[name]++
		}
	}
	return all, stacks
}

//go:noinline
func direct(h freehold.Allocator) []byte {
	b, err := h.Alloc(100, 8)
	if err != nil {
		panic(err)
	}
	return b
}

//go:noinline
func typed(h freehold.Allocator) *[32]int64 {
	v, err := freehold.New[[32]int64](h)
	if err != nil {
		panic(err)
	}
	return v
}

// A stack begins with the caller of package freehold. Blocks of one caller have one entry,
// whichever path through the module allocated them.
func TestStacksBeginWithTheCaller(t *testing.T) {
	sampleAt(t, 1)
	name := newName(t)
	h := freehold.NewHeap(&freehold.HeapOptions{Name: name})
	defer h.Close()
	limited := freehold.NewLimit(h, 1<<20)
	ways := []freehold.Allocator{h, limited}
	var blocks [][]byte
	for i := range 300 { // fast paths and slow ones
		blocks = append(blocks, direct(ways[i%2]))
		typed(limited)
	}
	for i, b := range blocks[:100] {
		ways[i%2].Free(b)
	}
	account := budget.NewAccount(nil, &budget.AccountOptions{Name: name + " account"})
	defer account.Close()
	for range 300 {
		direct(account)
	}
	if all, stacks := of(t, name+" account"); len(all) != 1 || stacks["track_test.direct"] != 1 {
		t.Errorf("of an account: %v", stacks)
	}
	a := arena.New(h, nil)
	defer a.Close()
	if _, err := a.Alloc(10, 8); err != nil {
		t.Fatal(err)
	}
	all, stacks := of(t, name)
	if u := all["track_test.direct"]; u.AllocObjects != 300 || u.AllocBytes != 30000 || u.FreeObjects != 100 || u.FreeBytes != 10000 || u.InUseObjects() != 200 || u.InUseBytes() != 20000 {
		t.Errorf("direct: %+v", u)
	}
	if u := all["track_test.typed"]; u.AllocObjects != 300 || u.InUseBytes() != 300*256 {
		t.Errorf("typed: %+v", u)
	}
	if stacks["track_test.direct"] != 1 || stacks["track_test.typed"] != 1 {
		t.Errorf("stacks: %v", stacks)
	}
	inArena := 0
	for name := range all {
		if strings.HasPrefix(name, "arena.") {
			inArena++
		}
	}
	if inArena == 0 {
		t.Errorf("no stack begins in package arena: %v", stacks)
	}
}

// Blocks through a Tagged have its tag, even if the same stack allocates other blocks. So do the
// chunks of arenas and pools above a Tagged. A Tagged without a name keeps the tag unchanged.
func TestTag(t *testing.T) {
	sampleAt(t, 1)
	h := freehold.NewHeap(&freehold.HeapOptions{Name: t.Name()})
	defer h.Close()
	db := freehold.NewTagged(h, "db")
	cache := freehold.NewTagged(freehold.NewLocked(db), "cache")
	for range 300 {
		for _, a := range []freehold.Allocator{h, freehold.NewTagged(db, ""), cache} {
			direct(a)
		}
	}
	a := arena.New(freehold.NewTagged(h, "arena"), nil)
	defer a.Close()
	direct(a)
	p := pool.New[int64](freehold.NewTagged(h, "pool"), nil)
	defer p.Close()
	if _, err := p.Get(); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, u := range track.Profile() {
		if u.Heap == t.Name() && u.InUseObjects() > 0 {
			got[u.Tag] += u.InUseObjects()
		}
	}
	// The pool takes two blocks: a chunk and its metadata.
	if want := map[string]int64{"": 300, "db": 300, "db/cache": 300, "arena": 1, "pool": 2}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestRate(t *testing.T) {
	sampleAt(t, 0)
	name := newName(t)
	h := freehold.NewHeap(&freehold.HeapOptions{Name: name})
	defer h.Close()
	h.Free(direct(h))
	if was := track.SetSampleRate(1); was != 0 || track.SampleRate() != 1 {
		t.Errorf("the rate was %d and is %d", was, track.SampleRate())
	}
	h.Free(direct(h))
	track.SetSampleRate(0)
	h.Free(direct(h))
	if all, _ := of(t, name); all["track_test.direct"].AllocObjects != 1 {
		t.Errorf("%+v", all)
	}
	defer func() {
		if got := fmt.Sprint(recover()); got != "freehold: track.SetSampleRate: bytes -1, want 0 or more" {
			t.Errorf("panic %q", got)
		}
	}()
	track.SetSampleRate(-1)
}

// Profile lists the most bytes in use first.
func TestOrder(t *testing.T) {
	sampleAt(t, 1)
	h := freehold.NewHeap(nil)
	defer h.Close()
	typed(h)
	for range 5 {
		direct(h)
	}
	all := track.Profile()
	for i := range all[1:] {
		if all[i].InUseBytes() < all[i+1].InUseBytes() {
			t.Errorf("%d bytes before %d", all[i].InUseBytes(), all[i+1].InUseBytes())
		}
	}
}

// FREEHOLD_DEBUG sets the rate before anything is allocated.
func TestRateOfTheEnvironment(t *testing.T) {
	if child.Is(t) {
		fmt.Println("rate", track.SampleRate())
		return
	}
	for value, want := range map[string]string{
		"profile":       "rate 524288\n",
		"profile=4096":  "rate 4096\n",
		"profile=-1":    "freehold: FREEHOLD_DEBUG: profile=-1, want a number of bytes from 1 on; the mode is off\nrate 0\n",
		"x,profile=999": `freehold: FREEHOLD_DEBUG: no mode "x"`,
	} {
		out, errs, err := child.Run(t, "FREEHOLD_DEBUG="+value)
		said := errs + strings.TrimPrefix(out, "=== RUN   "+t.Name()+"\n")
		if err != nil || !strings.HasPrefix(said, want) {
			t.Errorf("FREEHOLD_DEBUG=%s: %q, %v, want %q", value, said, err, want)
		}
	}
}
