//go:build race

package sanitizers

import (
	"sync"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/pool"
)

func TestRaceDetectorReports(t *testing.T) { testPrograms(t, "race_test.go") }

// guilty returns the whole report, which has the lines of the accesses.
func guilty(report string) string { return report }

const race = "WARNING: DATA RACE"

// both runs two goroutines that share no lock and waits for them.
func both(f, g func()) {
	var wg sync.WaitGroup
	wg.Go(f)
	wg.Go(g)
	wg.Wait()
}

func alloc(a freehold.Allocator, size int) []byte { return freehold.Must(a.Alloc(size, 8)) }

// The race detector may miss one race of two goroutines in lockstep, but not all of these.
type counters [100]int

var programs = []program{
	{name: "a large block", reports: race,
		do: func() {
			b := alloc(freehold.Default(), 1<<20)
			write := func() {
				for i := range 1000 {
					b[i<<10]++ // bug: a large block
				}
			}
			both(write, write)
		},
		twin: func() {
			b := alloc(freehold.Default(), 1<<20)
			both(func() { clear(b[:1000]) }, func() { b[1000] = 1 })
		}},
	{name: "an arena's value", reports: race,
		do: func() {
			a := arena.New(freehold.Default(), nil)
			v := freehold.Must(freehold.New[counters](a))
			write := func() {
				for i := range v {
					v[i]++ // bug: an arena's value
				}
			}
			both(write, write)
		},
		twin: func() {
			a := arena.New(freehold.Default(), nil)
			v, u := freehold.Must(freehold.New[counters](a)), freehold.Must(freehold.New[counters](a))
			both(func() { v[0]++ }, func() { u[0]++ })
			a.Reset()
			freehold.Must(freehold.New[counters](a))[0]++
			a.Close()
		}},
	{name: "a pool's value", reports: race,
		do: func() {
			p := pool.New[counters](freehold.Default(), nil)
			v := freehold.Must(p.Get())
			write := func() {
				for i := range v {
					v[i]++ // bug: a pool's value
				}
			}
			both(write, write)
		},
		twin: func() { // one goroutine puts the values that the other got
			p := pool.New[counters](freehold.Default(), nil)
			pass := make(chan *counters)
			both(func() {
				for range 1000 {
					v := freehold.Must(p.Get())
					v[0]++
					pass <- v
				}
				close(pass)
			}, func() {
				for v := range pass {
					v[0]++
					p.Put(v)
				}
			})
		}},
}
