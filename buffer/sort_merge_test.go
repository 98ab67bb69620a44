package buffer

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
)

// newMerger returns a merger of frames with lengths, outside of a sort.
func newMerger(cmp func(a, b []byte) int) *merger {
	m := &merger{
		job:    &job{ctx: context.Background(), guard: func(f func() error) error { return f() }},
		order:  order{cmp: cmp},
		layout: layoutOf(&RecordsOptions{}),
	}
	m.piece = (&gather{m}).mergePiece
	return m
}

// framesOf returns frames of records of these sizes, and the size of the last one.
func framesOf(m *merger, sizes []int) (frames []byte, last int) {
	for _, n := range sizes {
		frame := make([]byte, m.layout.frameOf(n))
		m.layout.put(frame, n)
		frames, last = append(frames, frame...), len(frame)
	}
	return frames, last
}

// A merge returns the size of the frame that it puts last, also if the order contradicts itself:
// the next merge finds that frame by it.
func TestMergeTellsTheSizeOfTheLastFrame(t *testing.T) {
	for name, tt := range map[string]struct {
		left, right []int // sizes of records
		scratch     int
		parallel    int
	}{
		"the last piece is empty":         {slices.Repeat([]int{1000}, 60), slices.Repeat([]int{500}, 60), 64 << 10, 4},
		"the left frame becomes the last": {[]int{5000}, []int{10, 20, 30}, 1000, 1},
	} {
		var calls atomic.Int64
		m := newMerger(func(_, _ []byte) int {
			if calls.Add(1) <= 2 {
				return 1 // the runs overlap
			}
			return -1
		})
		a, lastA := framesOf(m, tt.left)
		b, lastB := framesOf(m, tt.right)
		data := append(a, b...)
		got, want := m.merge(data, len(a), [2]int{lastA, lastB}, make([]byte, tt.scratch), tt.parallel), 0
		if err := m.layout.scan(data, 0, len(data), func(_, size int) { want = size }); err != nil || got != want {
			t.Errorf("%s: %d bytes, want %d; %v", name, got, want, err)
		}
	}
}
