package intern

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// A faucet is an allocator that fails once left allocations have succeeded, unless that is
// negative.
type faucet struct {
	freehold.Allocator
	left int
}

func (f *faucet) Alloc(size, align int) ([]byte, error) {
	if f.left == 0 {
		return nil, fmt.Errorf("%w: the faucet is closed", freehold.ErrOutOfMemory)
	}
	f.left--
	return f.Allocator.Alloc(size, align)
}

// Each allocation fails of each Intern that needs one: the strings are as before. Strings are
// so many that segments have split with the directory and without.
func TestGrowthThatFailsChangesNothing(t *testing.T) {
	for _, shared := range []bool{false, true} {
		f := &faucet{Allocator: alloctest.New(t), left: -1}
		m := newModel(t, f, shared, nil, shared)
		most, failures := 0, 0
		enough := func(i int) bool {
			if s, ok := m.s.(*Strings); ok {
				return len(s.table.directory) == 4
			}
			return i == 4500
		}
		for i := 0; !enough(i); i++ {
			v := fmt.Sprint("string ", i)
			if i%100 == 99 {
				v = strings.Repeat(v, 40)
			}
			for n := 0; len(m.ids) == i; n++ {
				before := m.s.Stats()
				f.left = n
				m.intern(v)
				f.left = -1
				if most = max(most, n); len(m.ids) > i {
					break
				}
				failures++
				_, ok := m.s.Lookup(v)
				if after := m.s.Stats(); ok || after.Len != before.Len || after.LiveBytes != before.LiveBytes || after.IDs != before.IDs {
					t.Fatalf("%+v, and %+v before the error; the string is there: %t", after, before, ok)
				}
				if !shared && i > 1000 || failures%50 == 0 {
					m.verify()
				}
			}
		}
		if !shared && most < 3 || failures < 20 { // a directory and two segments
			t.Errorf("no Intern took more than %d allocations, and %d failed", most, failures)
		}
		m.verify()
		m.close()
	}
}

// Where hashes begin alike, a split helps nothing: the directory stays small all the same.
func TestDirectoryOfHashesThatAgree(t *testing.T) {
	m := memory{parent: alloctest.New(t)}
	var tb table
	tb.init()
	const n = 10_000
	for i := range uint32(n) {
		r, err := tb.makeRoom(&m, i%256)
		if err != nil {
			t.Fatal(err)
		}
		tb.insert(r, i%256, i)
	}
	if fault := tb.check(); fault != "" {
		t.Error(fault)
	}
	if entries := len(tb.directory); entries > n/minPerEntry {
		t.Errorf("a directory of %d entries for %d slots", entries, n)
	}
	tb.close(&m)
}

// A segment with several entries of the directory grows at a hash of any of them.
func TestSegmentOfSeveralEntriesGrows(t *testing.T) {
	m := memory{parent: alloctest.New(t)}
	var tb table
	tb.init()
	defer tb.close(&m)
	n := uint32(0)
	add := func(hash uint32) {
		t.Helper()
		r, err := tb.makeRoom(&m, hash)
		if err != nil {
			t.Fatal(err)
		}
		tb.insert(r, hash, n)
		n++
		if fault := tb.check(); fault != "" {
			t.Fatalf("after %d slots: %s", n, fault)
		}
	}
	const spread = 0x9E3779B9
	for n < 100 { // of the second half, whose segment stays small
		add(1<<31 | n*spread>>1)
	}
	for tb.depth < 3 {
		add(n * spread >> 3) // 000...
	}
	before := tb.directory[7]
	for tb.directory[7].slots == before.slots {
		add(7<<29 | n*spread>>3)
	}
	if after := tb.directory[7]; before.depth != 1 || after.depth != 1 {
		t.Errorf("a segment of depth %d is one of depth %d now", before.depth, after.depth)
	}
}

// A free slot looks like one of the greatest hash. A search for that hash ends at the first free
// slot, and reads nothing behind the segment.
func TestGreatestHash(t *testing.T) {
	const greatest = 1<<hashBits - 1
	slots := []slot{0, 0, slotFor(greatest, 8), noSlot, noSlot, noSlot, noSlot, slotFor(greatest, 16)}
	tb := table{directory: []entry{{slots: addrOfSlots(slots[headBytes/slotBytes:]), homes: 1}}}
	if !tb.has(greatest, 8) || tb.has(greatest, 16) {
		t.Errorf("the slot in the segment is found: %t, the one behind it: %t", tb.has(greatest, 8), tb.has(greatest, 16))
	}
	runtime.KeepAlive(slots)
}

// A long segment is split if it has several entries of the directory, or if the directory may double.
func TestWhichSegmentsSplit(t *testing.T) {
	const long = maxSegmentBytes / slotBytes
	for _, tt := range []struct {
		depth     uint32
		used, all int
		want      bool
	}{
		{3, 100, 1 << 20, false}, // short
		{2, long, 0, true},
		{3, long, 16*minPerEntry - 1, false}, {3, long, 16 * minPerEntry, true},
	} {
		tb := table{directory: make([]entry, 8), depth: 3, used: tt.all}
		if got := tb.mustSplit(entry{depth: tt.depth}, tt.used); got != tt.want {
			t.Errorf("%+v: %t", tt, got)
		}
	}
}
