// Package measure has the common part of all benchmarks: their warm-up, their clocks, and the other
// figures that they report.
//
// They are benchmarks of package testing, which "go test -bench" runs too. Those that do a whole
// load need -benchtime=1x.
package measure

import (
	"flag"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/freehold-go/freehold/lab/process"
)

// Flags of the programs.
var (
	list  = flag.Bool("list", false, "run nothing, but name all benchmarks")
	chunk = flag.Int("chunk", 0, "run so many operations at a time, do not warm up, and report a sum of what the random numbers chose")
	scale = flag.String("scale", "usual", "how much of each load to run: usual, full or quick")
)

// Size returns the scale that the flags name.
func Size() Scale {
	s, err := ScaleOf(*scale)
	if err != nil {
		panic(err)
	}
	return s
}

// Run runs a benchmark of one peer.
func Run(b *testing.B, name, peer string, f func(b *testing.B)) {
	if *list {
		f = func(*testing.B) {}
	}
	b.Run(strings.TrimPrefix(name+"/peer="+peer, "/"), f)
}

// A Loop runs n operations and returns a sum of their random choices or of the values found.
type Loop func(n int) (sum uint64)

// Loops times a loop on several goroutines at once, each with its own clock. per is how many
// operations are one of the loop's.
//
// All goroutines warm up first and go on until the last one has, so that the time is of all of
// them together.
func Loops(b *testing.B, goroutines, per int, fresh func(goroutine int) Loop) {
	const (
		warming = iota
		measuring
		ended
	)
	var phase atomic.Int32
	ns, ops := make([]float64, goroutines), make([]int, goroutines)
	var warm, all sync.WaitGroup
	warm.Add(goroutines - 1)
	for i := 1; i < goroutines; i++ {
		all.Go(func() {
			loop := fresh(i)
			chunk := warmUp(loop)
			warm.Done()
			for phase.Load() == warming {
				loop(chunk)
			}
			start := time.Now()
			for ; phase.Load() == measuring; ops[i] += chunk {
				loop(chunk)
			}
			ns[i] = float64(time.Since(start))
		})
	}
	loop := fresh(0)
	chunk := warmUp(loop)
	warm.Wait()

	used := begin()
	sum := uint64(0)
	phase.Store(measuring)
	for b.Loop() {
		sum += loop(chunk)
	}
	phase.Store(ended)
	all.Wait()
	ns[0], ops[0] = float64(b.Elapsed()), b.N*chunk
	mean, total := 0.0, 0
	for i := range ns {
		mean += ns[i] / float64(max(ops[i], 1)*per) / float64(goroutines)
		total += ops[i]
	}
	used.report(b, total*per)
	b.ReportMetric(mean, "ns/op")
	Sum(b, sum)
}

// warmUp runs a loop until it is warm, and returns how many operations take about 200 us, so that
// reading the clock costs nothing.
func warmUp(loop Loop) int {
	if *chunk > 0 {
		return *chunk
	}
	chunk := 1
	for start := time.Now(); ; {
		t := time.Now()
		loop(chunk)
		if time.Since(t) < 200*time.Microsecond {
			chunk *= 2
		}
		if time.Since(start) >= Size().Warm {
			return chunk
		}
	}
}

// Sum reports a sum, which is equal for all peers. That keeps the compiler from leaving the loop
// out, and shows that all peers did the same.
func Sum(b *testing.B, sum uint64) {
	if *chunk > 0 {
		b.ReportMetric(float64(sum%(1<<52)), "sum")
	}
}

// A usage is the processor time in ns and the collections of the whole process, which the wall
// time of one goroutine hides.
type usage struct{ cpu, collections int64 }

func begin() usage { return usage{process.CPUTime(), process.Collections()} }

func (from usage) report(b *testing.B, ops int) {
	to := begin()
	b.ReportMetric(float64(to.cpu-from.cpu)/float64(max(ops, 1)), "cpu-ns/op")
	b.ReportMetric(float64(to.collections-from.collections), "gcs")
}

// Rounds times what round says that it has spent, after one round to warm up: over at least some
// rounds and 60 ms.
func Rounds(b *testing.B, least int, round func() time.Duration) {
	round()
	used, spent, rounds := begin(), time.Duration(0), 0
	for start := time.Now(); rounds < least || *chunk == 0 && time.Since(start) < 60*time.Millisecond; rounds++ {
		spent += round()
	}
	used.report(b, rounds)
	b.ReportMetric(float64(spent)/float64(rounds), "ns/op")
}

// Once times f as n operations, and after a collection, so that no garbage of before is in the
// time.
func Once(b *testing.B, n int, f func()) {
	runtime.GC()
	used := begin()
	start := time.Now()
	f()
	spent := time.Since(start)
	used.report(b, n)
	b.ReportMetric(float64(spent)/float64(n), "ns/op")
}

// Resident returns the bytes of physical memory that this process has. It skips the benchmark
// where the system does not tell.
func Resident(b *testing.B) uint64 {
	n, err := process.Resident()
	if err != nil {
		b.Skip(err)
	}
	return n
}

// Grown returns how much more physical memory this process has than before.
func Grown(b *testing.B, before uint64) uint64 {
	after := Resident(b)
	return after - min(before, after)
}
