package arena

import (
	"bytes"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

const (
	staleMark   = "freehold: arena.Arena.Rewind: a mark that a Rewind to an older one, or a Reset, has ended"
	foreignMark = "freehold: arena.Arena.Rewind: a mark of another arena"
)

func TestRewind(t *testing.T) {
	a := New(alloctest.New(t), &Options{ChunkBytes: 64, MaxChunkBytes: 128})
	defer a.Close()
	empty := a.Mark()
	var reserved int
	for range 3 {
		kept := freehold.Must(a.Alloc(20, 1))
		setAll(kept, 7)
		m := a.Mark()
		for range 2 {
			want := a.Stats()
			for i := range 50 {
				b := freehold.Must(a.Zeroed(1+5*i, 2))
				if !bytes.Equal(b, make([]byte, len(b))) {
					t.Fatal("not zero")
				}
				setAll(b, 0xFF)
				a.check(t)
			}
			a.Rewind(m)
			a.check(t)
			got := a.Stats()
			if got.LiveBytes != want.LiveBytes || got.Live != want.Live {
				t.Errorf("%+v after Rewind, %+v at the mark", got, want)
			}
			if reserved == 0 {
				reserved = got.Reserved
			} else if got.Reserved != reserved {
				t.Errorf("%d bytes reserved, were %d: memory is not used again", got.Reserved, reserved)
			}
		}
		if !bytes.Equal(kept, bytes.Repeat([]byte{7}, 20)) {
			t.Error("an older block has changed")
		}
		a.Rewind(empty)
		if got := a.Stats(); got.LiveBytes != 0 || got.Live != 0 {
			t.Errorf("%+v after Rewind to the beginning", got)
		}
	}
}

// TestLiveAfterRewind: Rewind does not restore a block older than the mark that
// was freed since.
func TestLiveAfterRewind(t *testing.T) {
	a := New(alloctest.New(t), nil)
	older, newest := freehold.Must(a.Alloc(8, 8)), freehold.Must(a.Alloc(8, 8))
	m := a.Mark()
	a.Free(older)
	a.Rewind(m)
	if n := a.Live(); n != 1 {
		t.Errorf("%d blocks live, want 1", n)
	}
	a.Free(newest)
	if n := a.Live(); n != 0 {
		t.Errorf("%d blocks live, want 0", n)
	}
	a.Close()
}

func TestMarksThatAreStale(t *testing.T) {
	a := New(alloctest.New(t), nil)
	other := New(alloctest.New(t), nil)
	defer a.Close()
	defer other.Close()
	wantPanic(t, foreignMark, func() { a.Rewind(other.Mark()) })
	wantPanic(t, foreignMark, func() { a.Rewind(Mark{}) })

	m1 := a.Mark()
	freehold.Must(a.Alloc(8, 8))
	m2 := a.Mark()
	freehold.Must(a.Alloc(8, 8))
	m3 := a.Mark()
	a.Rewind(m2)
	a.Rewind(m2)
	wantPanic(t, staleMark, func() { a.Rewind(m3) })
	freehold.Must(a.Alloc(100, 8)) // past the top of m3
	wantPanic(t, staleMark, func() { a.Rewind(m3) })
	m4 := a.Mark()
	freehold.Must(a.Alloc(8, 8))
	m5 := a.Mark()
	a.Rewind(m4)
	wantPanic(t, staleMark, func() { a.Rewind(m5) })
	wantPanic(t, staleMark, func() { a.Rewind(m3) })
	a.check(t)
	a.Rewind(m2)
	wantPanic(t, staleMark, func() { a.Rewind(m4) })
	a.Rewind(m1)
	wantPanic(t, staleMark, func() { a.Rewind(m2) })
	a.Reset()
	wantPanic(t, staleMark, func() { a.Rewind(m1) })
	a.Rewind(a.Mark())
	a.check(t)
}

// TestMarksCostNoMemory: neither a Mark that is dropped nor a Rewind to the newest does.
func TestMarksCostNoMemory(t *testing.T) {
	a := New(alloctest.New(t), nil)
	defer a.Close()
	outer := a.Mark()
	for range 1000 {
		a.Mark()
		m := a.Mark()
		freehold.Must(a.Alloc(8, 8))
		a.Rewind(m)
	}
	if len(a.endings) != 0 {
		t.Errorf("%d endings", len(a.endings))
	}
	for range 1000 {
		a.Rewind(outer)
		freehold.Must(a.Alloc(8, 8))
		a.Mark()
	}
	if len(a.endings) != 1 {
		t.Errorf("%d endings", len(a.endings))
	}
}

// TestNestedMarksCostNoMemory: marks are taken and rewound to in pairs, and no
// older mark ever is.
func TestNestedMarksCostNoMemory(t *testing.T) {
	a := New(alloctest.New(t), &Options{ChunkBytes: 64, MaxChunkBytes: 64})
	defer a.Close()
	first := a.Mark()
	for i := range 1000 {
		outer := a.Mark()
		freehold.Must(a.Alloc(8+i%100, 8))
		inner := a.Mark()
		freehold.Must(a.Alloc(8, 8))
		a.Rewind(inner)
		a.Rewind(outer)
		wantPanic(t, staleMark, func() { a.Rewind(inner) })
		a.check(t)
	}
	if len(a.endings) != 1 {
		t.Errorf("%d endings", len(a.endings))
	}

	// Blocks that stay between the pairs: an ending per block, and all marks that
	// are not stale can be rewound to.
	var outer, inner []Mark
	for range 100 {
		outer = append(outer, a.Mark())
		freehold.Must(a.Alloc(24, 8))
		inner = append(inner, a.Mark())
		a.Rewind(outer[len(outer)-1])
		freehold.Must(a.Alloc(40, 8))
	}
	if len(a.endings) != 100 {
		t.Errorf("%d endings after 100 blocks", len(a.endings))
	}
	for i := 99; i >= 0; i-- {
		wantPanic(t, staleMark, func() { a.Rewind(inner[i]) })
		a.Rewind(outer[i])
		a.check(t)
	}
	a.Rewind(first)
	if len(a.endings) != 1 {
		t.Errorf("%d endings at the beginning", len(a.endings))
	}
}

// TestMarksOfOneState: a Rewind to a mark does not end another of the same state.
func TestMarksOfOneState(t *testing.T) {
	a := New(alloctest.New(t), nil)
	defer a.Close()
	freehold.Must(a.Alloc(8, 8))
	m1, m2 := a.Mark(), a.Mark()
	freehold.Must(a.Alloc(8, 8))
	a.Rewind(m1)
	freehold.Must(a.Alloc(16, 8))
	a.Rewind(m2)
	if got := a.Stats().LiveBytes; got != 8 {
		t.Errorf("%d bytes live, want 8", got)
	}
	a.check(t)
}

// TestMarkOfAChunkThatIsSpareAgain: the newest blocks were freed, so that the mark
// has fewer bytes than an older one, but more chunks.
func TestMarkOfAChunkThatIsSpareAgain(t *testing.T) {
	a := New(alloctest.New(t), &Options{ChunkBytes: 64, MaxChunkBytes: 64})
	defer a.Close()
	b := freehold.Must(a.Alloc(60, 1))
	m1 := a.Mark()
	a.Free(b)
	a.Free(freehold.Must(a.Alloc(1000, 1)))
	m2 := a.Mark()
	freehold.Must(a.Alloc(1, 1))
	a.Rewind(m1)
	a.Trim()
	wantPanic(t, staleMark, func() { a.Rewind(m2) })
	a.check(t)
}

func TestRewindAfterTheNewestBlocksWereFreed(t *testing.T) {
	a := New(alloctest.New(t), nil)
	defer a.Close()
	first := freehold.Must(a.Alloc(8, 8))
	second := freehold.Must(a.Zeroed(8, 8))
	m := a.Mark()
	a.Free(second)
	a.Rewind(m) // top is after second again
	a.check(t)
	if b := freehold.Must(a.Zeroed(8, 8)); addressOf(b) != addressOf(first)+16 {
		t.Error("not where the mark was")
	}
	a.check(t)
}

// TrimTo gives back the chunks above the bound, and no more.
func TestTrimToWhatThereIs(t *testing.T) {
	a := New(alloctest.New(t), nil)
	defer a.Close()
	freehold.Must(a.Alloc(8, 8))
	a.Reset()
	reserved := a.Stats().Reserved
	a.TrimTo(reserved)
	if got := a.Stats().Reserved; got != reserved {
		t.Errorf("TrimTo(%d) leaves %d bytes", reserved, got)
	}
}
