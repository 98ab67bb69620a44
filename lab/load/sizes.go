package load

import (
	"math"
	"math/rand/v2"
)

// Sizes is a distribution of chunk sizes. If it has two spans, each has half of the bytes.
type Sizes string

// A span is sizes from least to most: each is as likely as any other if it is even, and each
// doubling is otherwise.
type span struct {
	least, most float64
	even        bool
}

var (
	big   = span{16, 4 << 20, true}
	small = span{16, 64 << 10, false}
)

var spans = map[Sizes][]span{
	"big": {big}, "small": {small}, "both": {big, small},
	"boxed": {{1 << 10, 1 << 20, false}}, // of the load in a box
}

// mean returns the average size.
func (s span) mean() float64 {
	if s.even {
		return (s.least + s.most) / 2
	}
	return (s.most - s.least) / math.Log(s.most/s.least)
}

// next draws a size.
func (s Sizes) next(r *rand.Rand) int {
	all := spans[s]
	one := all[0]
	if len(all) > 1 && r.Float64() < one.mean()/(one.mean()+all[1].mean()) {
		one = all[1]
	}
	if one.even {
		return int(one.least + r.Float64()*(one.most-one.least+1))
	}
	return int(one.least * math.Pow(one.most/one.least, r.Float64()))
}

// Max returns the largest size that next draws.
func (s Sizes) Max() int64 { return int64(spans[s][0].most) }

// mean returns the average size that next draws.
func (s Sizes) mean() float64 {
	all, inverse := spans[s], 0.0
	for _, one := range all {
		inverse += 1 / one.mean()
	}
	return float64(len(all)) / inverse
}
