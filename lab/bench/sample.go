// Sample: one run of a row's program, and the median of several.

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sampleTimeout is far beyond any load: a program that takes longer hangs.
const sampleTimeout = 5 * time.Minute

// A sample is what one run of a row's program found.
type sample struct {
	Round     int     `json:"round"`
	NS        float64 `json:"ns"`        // per operation, wall time
	CPU       float64 `json:"cpu_ns"`    // per operation, processor time of all threads
	Ops       float64 `json:"ops"`       // operations measured
	GCs       float64 `json:"gcs"`       // Go collections meanwhile
	Requested float64 `json:"requested"` // bytes in live blocks
	Resident  float64 `json:"resident"`  // bytes the process grew by
	Peak      float64 `json:"peak"`      // bytes the process had, at most
	Mallocs   float64 `json:"mallocs"`   // Go heap allocations per operation
	Sum       uint64  `json:"sum"`       // of what the random numbers chose
	Others    float64 `json:"others"`    // processors' worth of other programs meanwhile
	Noisy     bool    `json:"noisy"`     // too much of that, in every attempt

	version string
}

// errSkip is a program's own word that it cannot run a load.
var errSkip = errors.New("skipped")

// take runs r's program on l once.
func take(ctx context.Context, r *row, l load) (sample, error) {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, r.path, slices.Concat(r.args, l.args)...)
	cmd.Env = append(os.Environ(), r.env...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if said, _, _ := strings.Cut(strings.TrimSpace(errs.String()), "\n"); said != "" {
			return sample{}, errors.New(said)
		}
		return sample{}, err
	}
	return parseSample(out.String())
}

// parseSample reads the lines that the programs print: name=value.
func parseSample(text string) (s sample, err error) {
	fields := map[string]*float64{
		"ns": &s.NS, "ops": &s.Ops, "cpu": &s.CPU, "gcs": &s.GCs,
		"requested": &s.Requested, "resident": &s.Resident, "peak": &s.Peak, "mallocs": &s.Mallocs,
	}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch name {
		case "version":
			s.version = value
		case "skip":
			return s, fmt.Errorf("%w: %s", errSkip, value)
		case "sum":
			s.Sum, err = strconv.ParseUint(value, 10, 64)
		default:
			if field := fields[name]; field != nil {
				*field, err = strconv.ParseFloat(value, 64)
			}
		}
		if err != nil {
			return s, fmt.Errorf("the program printed %q", line)
		}
	}
	return s, nil
}

// A spread is the median of some figures and their extremes.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	N      int     `json:"n"`
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
