package load

import (
	"math"
	"math/rand/v2"
)

// Sizes is a distribution of chunk sizes:
//
//	big    16 B to 4 MiB, each size as likely as any other
//	small  16 B to 64 KiB, each doubling as likely as any other
//	both   a mix of them, half of the bytes from each
//	boxed  1 KiB to 1 MiB, each doubling as likely as any other
type Sizes string

const (
	minChunk      = 16
	maxBigChunk   = 4 << 20
	maxSmallChunk = 64 << 10
)

const meanBig = (minChunk + maxBigChunk) / 2

var (
	doublings = math.Log2(maxSmallChunk / minChunk)
	meanSmall = (maxSmallChunk - minChunk) / (doublings * math.Ln2)
)

// next draws a size.
func (s Sizes) next(r *rand.Rand) int {
	switch {
	case s == "boxed":
		return int(math.Exp2(10 + 10*r.Float64()))
	case s == "big", s == "both" && r.Float64() < meanSmall/(meanSmall+meanBig):
		return minChunk + r.IntN(maxBigChunk-minChunk+1)
	}
	return int(minChunk * math.Exp2(r.Float64()*doublings))
}

// Max returns the largest size that next draws.
func (s Sizes) Max() int64 {
	if s == "small" {
		return maxSmallChunk
	}
	return maxBigChunk
}

// mean returns the average size that next draws of big, small or both.
func (s Sizes) mean() float64 {
	switch s {
	case "big":
		return meanBig
	case "small":
		return meanSmall
	default:
		return 2 * meanBig * meanSmall / (meanBig + meanSmall)
	}
}

// Text says what is drawn, for reports.
func (s Sizes) Text() string {
	switch s {
	case "big":
		return "big chunks (16 B to 4 MiB)"
	case "small":
		return "small chunks (16 B to 64 KiB)"
	default:
		return "big and small chunks (16 B to 4 MiB, half of the bytes in those up to 64 KiB)"
	}
}
