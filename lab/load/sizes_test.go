package load

import (
	"math/rand/v2"
	"testing"
)

func TestSizes(t *testing.T) {
	for s, all := range spans {
		t.Run(string(s), func(t *testing.T) {
			const n = 1_000_000
			a, b := rand.New(rand.NewPCG(1, 0)), rand.New(rand.NewPCG(1, 0))
			var sum, inSmall float64
			for range n {
				size := s.next(a)
				if float64(size) < all[0].least || int64(size) > s.Max() {
					t.Fatalf("%d bytes", size)
				}
				if again := s.next(b); again != size {
					t.Fatalf("the same seed gave %d and %d", size, again)
				}
				sum += float64(size)
				if float64(size) <= small.most {
					inSmall += float64(size)
				}
			}
			if mean := sum / n; mean < 0.95*s.mean() || mean > 1.05*s.mean() {
				t.Errorf("mean %.0f, want about %.0f", mean, s.mean())
			}
			if part := inSmall / sum; s == "both" && (part < 0.45 || part > 0.55) {
				t.Errorf("%.2f of the bytes are in small chunks, want about half", part)
			}
		})
	}
}
