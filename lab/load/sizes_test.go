package load

import (
	"math/rand/v2"
	"testing"
)

func TestSizes(t *testing.T) {
	for _, s := range []Sizes{"big", "small", "both"} {
		t.Run(string(s), func(t *testing.T) {
			const n = 400_000
			a, b := rand.New(rand.NewPCG(1, 0)), rand.New(rand.NewPCG(1, 0))
			var sum float64
			for range n {
				size := s.next(a)
				if size < minChunk || int64(size) > s.Max() {
					t.Fatalf("%d bytes, outside %d to %d", size, minChunk, s.Max())
				}
				if again := s.next(b); again != size {
					t.Fatalf("the same seed gave %d and %d", size, again)
				}
				sum += float64(size)
			}
			if mean := sum / n; mean < 0.95*s.mean() || mean > 1.05*s.mean() {
				t.Errorf("mean %.0f, want about %.0f", mean, s.mean())
			}
		})
	}
}

func TestBothIsHalfOfEach(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	var small, all float64
	for range 1_000_000 {
		size := float64(Sizes("both").next(r))
		all += size
		if size <= maxSmallChunk {
			small += size
		}
	}
	if part := small / all; part < 0.45 || part > 0.55 {
		t.Errorf("%.2f of the bytes are in small chunks, want about half", part)
	}
}
