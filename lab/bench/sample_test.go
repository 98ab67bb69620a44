package bench

import (
	"math"
	"slices"
	"testing"

	measured "github.com/freehold-go/freehold/lab/bench/sample"
)

func TestSpread(t *testing.T) {
	tests := []struct {
		in               []float64
		median, min, max float64
	}{
		{[]float64{5}, 5, 5, 5},
		{[]float64{9, 1, 2}, 2, 1, 9},
		{[]float64{4, 1, 2, 100}, 3, 1, 100}, // even: between the middle two
		{[]float64{7, 7, 7}, 7, 7, 7},
	}
	for _, tt := range tests {
		before := slices.Clone(tt.in)
		s := spreadOf(tt.in)
		if s.Median != tt.median || s.Min != tt.min || s.Max != tt.max || s.N != len(tt.in) {
			t.Errorf("spreadOf(%v) = %+v", tt.in, s)
		}
		if !slices.Equal(before, tt.in) {
			t.Errorf("spreadOf reordered %v into %v", before, tt.in)
		}
	}
	if s := spreadOf(nil); !math.IsNaN(s.Median) || s.N != 0 {
		t.Errorf("spreadOf(nil) = %+v", s)
	}
}

func TestUnits(t *testing.T) {
	s := sample{Sample: measured.Sample{NS: 2e6, Ops: 10, Requested: 1000, Resident: 1150, Mallocs: 0.5}}
	for u, want := range map[unit]float64{nanoseconds: 2e6, whole: 2, resident: 1.15, overhead: 15, mallocs: 0.5} {
		if got := u.of(s); math.Abs(got-want) > 1e-12 {
			t.Errorf("%v of the sample is %v, want %v", u, got, want)
		}
	}
}
