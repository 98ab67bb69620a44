// Bitmaps: ranges of bits.

package pages

import (
	"runtime"
	"runtime/debug"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/vm"
)

// bitmapOf returns a bitmap of words that stay in place until the test ends.
func bitmapOf(t *testing.T, words []uint64) Bitmap {
	var pinned runtime.Pinner
	pinned.Pin(&words[0])
	t.Cleanup(pinned.Unpin)
	return Bitmap(unsafe.Pointer(&words[0]))
}

func TestBitmap(t *testing.T) {
	words := make([]uint64, 8)
	m := bitmapOf(t, words)
	for _, tt := range []struct{ i, n uintptr }{{0, 1}, {0, 64}, {63, 2}, {1, 62}, {64, 64}, {5, 500}, {130, 0}} {
		clear(words)
		m.SetRange(tt.i, tt.n)
		for i := uintptr(0); i < 512; i++ {
			if m.Has(i) != (i >= tt.i && i < tt.i+tt.n) {
				t.Fatalf("setRange(%d, %d): bit %d is %v", tt.i, tt.n, i, m.Has(i))
			}
		}
		if got := m.Count(0, 512); got != tt.n {
			t.Errorf("setRange(%d, %d): count is %d", tt.i, tt.n, got)
		}
		if tt.n > 0 {
			if first := m.Next(0, 512, true); first != tt.i {
				t.Errorf("setRange(%d, %d): first is %d", tt.i, tt.n, first)
			}
			if end := m.Next(tt.i, 512, false); end != tt.i+tt.n {
				t.Errorf("setRange(%d, %d): end is %d", tt.i, tt.n, end)
			}
		}
		m.ClearRange(tt.i, tt.n)
		if got := m.Count(0, 512); got != 0 {
			t.Errorf("clearRange(%d, %d) leaves %d bits", tt.i, tt.n, got)
		}
	}
}

func TestSearchStaysInItsRange(t *testing.T) {
	m := bitmapOf(t, []uint64{1 << 20, 1 << 3})
	for _, tt := range []struct{ i, end, want uintptr }{{0, 10, 10}, {0, 20, 20}, {0, 21, 20}, {21, 64, 64}, {21, 67, 67}, {21, 68, 67}} {
		if got := m.Next(tt.i, tt.end, true); got != tt.want {
			t.Errorf("next in [%d, %d) is %d, want %d", tt.i, tt.end, got, tt.want)
		}
	}
}

func TestLastBitOfABitmap(t *testing.T) {
	m := bitmapOf(t, []uint64{0, 1<<63 | 1<<5, 0, ^uint64(0)})
	for _, want := range []bool{true, false} {
		for begin := uintptr(0); begin <= 256; begin++ {
			for end := begin; end <= 256; end++ {
				at := end
				for at > begin && m.Has(at-1) != want {
					at--
				}
				if got := m.last(begin, end, want); got != at {
					t.Fatalf("the last %t in [%d, %d) ends at %d, want %d", want, begin, end, got, at)
				}
			}
		}
	}
}

// A purge takes a run in slices. If each of them read all words of the run, the time would be
// quadratic: 27 s for 64 GiB.
func TestLastRunReadsOnlyItsBits(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	size := 2 * vm.PageBytes()
	addr, err := vm.Reserve(size, vm.PageBytes())
	if err != nil {
		t.Fatal(err)
	}
	defer vm.Revoke(addr, size)
	if err := vm.Commit(addr+size/2, size/2); err != nil {
		t.Fatal(err)
	}
	m, half, end := Bitmap(addr), size/2*8, size*8 // the first half of the words is inaccessible
	m.SetRange(half, end-half)
	if from, to := m.lastRun(0, end, 64); from != end-64 || to != end {
		t.Errorf("the last 64 of bits that are all set are [%d, %d)", from, to)
	}
	m.ClearRange(end-10, 2)
	for _, tt := range []struct{ begin, end, n, from, to uintptr }{
		{half, end, 64, end - 8, end},
		{half, end - 8, 64, end - 74, end - 10},
		{end - 20, end - 8, 64, end - 20, end - 10},
		{end - 10, end - 8, 64, end - 10, end - 10}, // no bit is set
	} {
		if from, to := m.lastRun(tt.begin, tt.end, tt.n); from != tt.from || to != tt.to {
			t.Errorf("lastRun(%d, %d, %d) is [%d, %d), want [%d, %d)", tt.begin, tt.end, tt.n, from, to, tt.from, tt.to)
		}
	}
}
