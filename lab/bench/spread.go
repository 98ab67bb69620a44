// Sample: one run of a row's program, and the median of several.

package bench

import (
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"slices"
	"time"

	measured "github.com/freehold-go/freehold/lab/bench/sample"
	child "github.com/freehold-go/freehold/lab/run"
	"github.com/freehold-go/freehold/lab/wire"
)

// sampleTimeout is far beyond any load: a program that takes longer hangs.
const sampleTimeout = 5 * time.Minute

// A sample is what one run of a row's program found.
type sample struct {
	measured.Sample
	Round  int
	Others float64 // processors' worth of other programs meanwhile
	Noisy  bool    // too much of that, in every attempt
}

// errSkip is a program's own word that it cannot run a load.
var errSkip = errors.New("skipped")

// take runs r's program on l once.
func take(ctx context.Context, r *row, l load) (s sample, err error) {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.path, slices.Concat(r.args, l.args)...)
	cmd.Env = append(os.Environ(), r.env...)
	err = child.Child(ctx, cmd, func(wire.Message) {}, &s.Sample)
	if errors.As(err, new(child.UnavailableError)) {
		err = errors.Join(errSkip, err)
	}
	return s, err
}

// A spread is the median of some figures and their extremes.
type spread struct {
	Median float64
	Min    float64
	Max    float64
	N      int
}

func spreadOf(v []float64) spread {
	if len(v) == 0 {
		return spread{math.NaN(), math.NaN(), math.NaN(), 0}
	}
	v = slices.Sorted(slices.Values(v))
	mid := len(v) / 2
	median := v[mid]
	if len(v)%2 == 0 {
		median = (v[mid-1] + v[mid]) / 2
	}
	return spread{median, v[0], v[len(v)-1], len(v)}
}
