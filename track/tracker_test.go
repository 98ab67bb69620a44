package track_test

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/track"
)

func TestTrackerConforms(t *testing.T) {
	sampleAt(t, 0)
	for name, next := range map[string]func(t *testing.T) freehold.Allocator{
		"alloctest": func(t *testing.T) freehold.Allocator { return alloctest.New(t) },
		"blind":     func(t *testing.T) freehold.Allocator { return blind{alloctest.New(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			alloctest.TestAllocator(t, func(t *testing.T) freehold.Allocator {
				tracker := track.NewTracker(next(t))
				t.Cleanup(func() {
					if blocks, bytes := tracker.Live(); blocks != 0 || bytes != 0 {
						t.Errorf("when all are freed: %v", tracker)
					}
				})
				return tracker
			}, &alloctest.Options{Concurrent: true, Detects: alloctest.AllMistakes})
		})
	}
}

// blind hides that an allocator is an Owner.
type blind struct{ freehold.Allocator }

var panicOf = panics.Of

//go:noinline
func other(a freehold.Allocator) []byte {
	b, err := a.Zeroed(50, 8)
	if err != nil {
		panic(err)
	}
	return b
}

// A Tracker has each live block with its stack, of an allocator that nothing samples.
func TestTrackerLeaks(t *testing.T) {
	a := arena.New(freehold.Default(), nil)
	defer a.Close()
	tracker := track.NewTracker(a)
	if got := tracker.String(); got != "tracker: 0 blocks, 0 bytes live" {
		t.Errorf("%s", got)
	}
	for range 5 {
		other(tracker)
		tracker.Free(direct(tracker))
	}
	b := direct(freehold.NewLimit(tracker, 1000))
	tracker.Alloc(0, 8)
	leaks := tracker.Leaks()
	if len(leaks) != 2 || leaks[0].Bytes != 250 || leaks[0].Blocks != 5 || functionOf(leaks[0].Stack) != "other" || leaks[1].Bytes != 100 || leaks[0].Heap != "" {
		t.Errorf("%+v", leaks)
	}
	if got := functionOf(leaks[1].Stack); got != "direct" { // and no wrapper
		t.Errorf("allocated by %s", got)
	}
	if blocks, bytes := tracker.Live(); blocks != 6 || bytes != 350 || tracker.String() != "tracker: 6 blocks, 350 bytes live" {
		t.Errorf("%v", tracker)
	}
	var text strings.Builder
	err := tracker.WriteLeaks(&text)
	want := `^freehold: 6 blocks, 350 bytes live, by 2 stacks\n\n5 blocks, 250 bytes, allocated at:\n.*track_test.other\n\t.*tracker_test.go:\d+\n.*track_test.TestTrackerLeaks\n`
	if err != nil || !regexp.MustCompile(want).MatchString(text.String()) {
		t.Errorf("%v\n%s", err, text.String())
	}
	if err := tracker.WriteLeaks(full(0)); err != io.ErrShortWrite {
		t.Error(err)
	}
	tracker.Free(b)
	if text := tracker.String(); text != "tracker: 5 blocks, 250 bytes live" {
		t.Errorf("printed as %s", text)
	}
	if none := (*track.Tracker)(nil); none.String() != "<nil>" {
		t.Error(none)
	}
	text.Reset()
	if err := track.NewTracker(a).WriteLeaks(&text); err != nil || text.String() != "freehold: no live block was recorded\n" {
		t.Errorf("%v, %s", err, text.String())
	}
}

// A Free of what is no live block says what it is, and next does not see it.
func TestTrackerMisuse(t *testing.T) {
	a := arena.New(freehold.Default(), nil)
	defer a.Close()
	tracker := track.NewTracker(a)
	freed := direct(tracker)
	tracker.Free(freed)
	foreign := make([]byte, 10)
	const lines = `(\tgithub.*\n\t\t.*:\d+\n)+`
	if other := direct(a); &other[0] != &freed[0] { // nobody has the address of freed after it
		t.Fatal("the arena has gone on")
	}
	for want, call := range map[string]func(){
		`^freehold: track.Tracker.Free: 100 bytes at 0x[0-9a-f]+, which is in a freed block of 100 bytes\nallocated at:\n\tgithub.com/freehold-go/freehold/track_test.direct\n\t\t.*track_test.go:\d+\n` + lines + `freed at:\n\tgithub.com/freehold-go/freehold/track_test.TestTrackerMisuse\n`: func() { tracker.Free(freed) },
		`^freehold: track.Tracker.Resize: 100 bytes at 0x[0-9a-f]+, which is in a freed block of 100 bytes\nallocated at:\n` + lines + `freed at:\n`:                                                                                                                                             func() { tracker.Resize(freed, 9) },
		`^freehold: track.Tracker.Free: 10 bytes at 0x[0-9a-f]+, which this Tracker did not allocate; was it moved by append\?$`:                                                                                                                                                                 func() { tracker.Free(foreign) },
	} {
		if got := panicOf(call); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("panic %s, want %s", got, want)
		}
	}
	b := other(tracker)
	for want, call := range map[string]func(){
		"Free: 49 bytes ... at byte 0 of a live block of 50 bytes":   func() { tracker.Free(b[:49]) },
		"Free: 49 bytes ... at byte 1 of a live block of 50 bytes":   func() { tracker.Free(b[1:]) },
		"Resize: 48 bytes ... at byte 2 of a live block of 50 bytes": func() { tracker.Resize(b[2:], 100) },
	} {
		got := panicOf(call)
		head, tail, _ := strings.Cut(want, " ... ")
		if !strings.Contains(got, head) || !strings.Contains(got, tail+"\nallocated at:\n\tgithub.com/freehold-go/freehold/track_test.other\n") {
			t.Errorf("panic %s, want %s", got, want)
		}
	}
	tracker.Free(b)
	if got := panicOf(func() { track.NewTracker(nil) }); got != "freehold: track.NewTracker: next is nil" {
		t.Errorf("panic %q", got)
	}
	for name, call := range map[string]func(){
		"Alloc": func() { new(track.Tracker).Alloc(8, 8) }, "Zeroed": func() { new(track.Tracker).Zeroed(8, 8) },
		"Resize": func() { new(track.Tracker).Resize(nil, 8) }, "Free": func() { new(track.Tracker).Free(nil) },
	} {
		if panicOf(call) == "" {
			t.Errorf("%s of a zero Tracker does not panic", name)
		}
	}
}

// Of many freed blocks the last are remembered, and the newest of an address.
func TestTrackerRemembersFreedBlocks(t *testing.T) {
	a := arena.New(freehold.Default(), nil)
	defer a.Close()
	tracker := track.NewTracker(a)
	first := direct(tracker)
	freeFirst(tracker, first)
	second := other(tracker) // at the same address
	tracker.Free(second)
	if got := panicOf(func() { tracker.Free(second) }); !strings.Contains(got, "freed block of 50 bytes") || strings.Contains(got, "freeFirst") {
		t.Errorf("panic %s", got)
	}
	for range 1000 {
		tracker.Free(other(tracker))
	}
	last := direct(tracker)
	tracker.Free(last)
	if got := panicOf(func() { tracker.Free(last) }); !strings.Contains(got, "freed block of 100 bytes") {
		t.Errorf("panic %s", got)
	}
}

// An address has a place for each of its last 64 blocks.
func TestTrackerRemembersBlocksOfAnAddress(t *testing.T) {
	bytes := make([]byte, 100)
	tracker := track.NewTracker(fixed{nil, bytes})
	tracker.Free(direct(tracker))
	for frees, want := range [...]string{63: "in a freed block of 100 bytes", 64: "which this Tracker did not allocate"} {
		if got := panicOf(func() { tracker.Free(bytes[50:51]) }); !strings.Contains(got, want) {
			t.Errorf("after %d more: panic %s, want %s", frees, got, want)
		}
		tracker.Free(freehold.Must(tracker.Alloc(3, 1)))
	}
}

//go:noinline
func freeFirst(a freehold.Allocator, b []byte) { a.Free(b) }

// picky is an allocator whose Free and Resize panic.
type picky struct{ freehold.Allocator }

func (picky) Free(b []byte)                            { panic("no") }
func (picky) Resize(b []byte, size int) ([]byte, bool) { panic("no") }

// A block stays live if next panics.
func TestTrackerKeepsWhatNextKeeps(t *testing.T) {
	a := arena.New(freehold.Default(), nil)
	defer a.Close()
	tracker := track.NewTracker(picky{a})
	b := direct(tracker)
	for _, call := range []func(){func() { tracker.Free(b) }, func() { tracker.Resize(b, 9) }} {
		if got := panicOf(call); got != "no" {
			t.Errorf("panic %s", got)
		}
		if blocks, bytes := tracker.Live(); blocks != 1 || bytes != 100 {
			t.Errorf("%v", tracker)
		}
	}
	good := track.NewTracker(a)
	c := direct(good)
	if _, ok := good.Resize(c, 1<<20); ok {
		t.Fatal("resized")
	}
	c, _ = good.Resize(c, 40)
	if blocks, bytes := good.Live(); blocks != 1 || bytes != 40 {
		t.Errorf("%v", good)
	}
	good.Free(c)
}

func TestTrackerPassesOn(t *testing.T) {
	h := freehold.NewHeap(nil)
	defer h.Close()
	tracker, veiled := track.NewTracker(h), track.NewTracker(blind{h})
	if tracker.GoodSize(100) != h.GoodSize(100) || veiled.GoodSize(100) != 100 || veiled.GoodSize(-1) != 0 {
		t.Errorf("good sizes %d, %d, %d", tracker.GoodSize(100), veiled.GoodSize(100), veiled.GoodSize(-1))
	}
	b := direct(veiled)
	if !tracker.Owns(b) || !veiled.Owns(b[99:]) || tracker.Owns(make([]byte, 9)) || veiled.Owns(make([]byte, 9)) || veiled.Owns(nil) || tracker.Owns(nil) {
		t.Error("Owns is wrong")
	}
	veiled.Free(b)
	if veiled.Owns(b) {
		t.Error("owns a freed block")
	}
}

func ExampleTracker() {
	scratch := arena.New(freehold.Default(), nil)
	defer scratch.Close()
	a := track.NewTracker(scratch)
	freehold.Must(a.Alloc(100, 8))
	a.Free(freehold.Must(a.Alloc(200, 8)))
	for _, l := range a.Leaks() {
		fmt.Println(l.Blocks, "block,", l.Bytes, "bytes")
	}
	// Output: 1 block, 100 bytes
}

func BenchmarkTracker(b *testing.B) {
	h := freehold.NewHeap(nil)
	defer h.Close()
	tracker := track.NewTracker(h)
	for b.Loop() {
		m, err := tracker.Alloc(64, 8)
		if err != nil {
			b.Fatal(err)
		}
		tracker.Free(m)
	}
}
