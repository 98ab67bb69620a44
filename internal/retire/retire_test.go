package retire_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/freehold-go/freehold/epoch"
	"github.com/freehold-go/freehold/internal/retire"
)

// A Queue returns values in order, and none while a guard is held that was entered before its
// batch was sealed: any sequence of calls, against a slice of batches.
func TestQueueAgainstAModel(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		var d epoch.Domain
		var q retire.Queue[int]
		type batch struct {
			values []int
			guards []*epoch.Guard // entered before it was sealed
		}
		var open []int
		var batches []batch
		var guards []*epoch.Guard
		for next := 0; next < 500; {
			switch r.IntN(6) {
			case 0, 1:
				var add []int
				for range r.IntN(5) {
					add = append(add, next)
					next++
				}
				if open = append(open, add...); q.Add(add...) != len(open) {
					t.Fatal("Add returned another number of values")
				}
			case 2:
				if q.Seal(&d) != (len(open) > 0) {
					t.Fatal("Seal reported another batch")
				}
				if len(open) > 0 {
					batches = append(batches, batch{open, slices.Clone(guards)})
					open = nil
				}
			case 3:
				if len(guards) < 3 {
					g := d.Enter()
					guards = append(guards, &g)
				}
			case 4:
				if len(guards) > 0 {
					i := r.IntN(len(guards))
					g := guards[i]
					g.Leave()
					guards = slices.Delete(guards, i, i+1)
					for j := range batches {
						batches[j].guards = slices.DeleteFunc(batches[j].guards, func(x *epoch.Guard) bool { return x == g })
					}
				}
			case 5:
				var want []int
				n := 1 + r.IntN(4)
				passed := len(batches) > 0 && len(batches[0].guards) == 0
				if passed {
					want = batches[0].values[:min(n, len(batches[0].values))]
					if batches[0].values = batches[0].values[len(want):]; len(batches[0].values) == 0 {
						batches = batches[1:]
					}
				}
				if p := q.Passed(); p != passed {
					t.Fatalf("seed %d: Passed is %t, want %t", seed, p, passed)
				}
				if got := q.Pop(n); !slices.Equal(got, want) {
					t.Fatalf("seed %d: Pop(%d) = %v, want %v", seed, n, got, want)
				}
			}
			var all []int
			for _, b := range batches {
				all = append(all, b.values...)
			}
			if all = append(all, open...); !slices.Equal(slices.Collect(q.All()), all) || q.Len() != len(all) {
				t.Fatalf("seed %d: the Queue has %d values, want %d", seed, q.Len(), len(all))
			}
		}
		for _, g := range guards {
			g.Leave()
		}
	}
}

// A queue that is filled and emptied over and over allocates an Epoch for each batch and no array.
func TestQueueReusesItsArrays(t *testing.T) {
	var d epoch.Domain
	var q retire.Queue[int]
	values := make([]int, 1000)
	turn := func() {
		q.Add(values...)
		q.Seal(&d)
		for len(q.Pop(100)) > 0 {
		}
	}
	turn()
	if n := testing.AllocsPerRun(100, turn); n > 1 {
		t.Errorf("%v allocations a batch", n)
	}
}

// An array that grew while a guard was held is not kept when the Queue is empty.
func TestQueueReturnsALargeArray(t *testing.T) {
	const batches = 100_000
	var d epoch.Domain
	var q retire.Queue[byte]
	inUse := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := inUse()
	g := d.Enter()
	for range batches {
		q.Add(1)
		q.Seal(&d)
	}
	g.Leave()
	for q.Pop(1) != nil {
	}
	if kept := inUse() - before; kept > batches {
		t.Errorf("an empty Queue keeps %d bytes", kept)
	}
	runtime.KeepAlive(&q)
}
