package pin_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"weak"

	"github.com/freehold-go/freehold/internal/pin"
)

// A pair is a value that shows whether it has one user: its halves are equal between uses.
type pair struct{ a, b int }

var noPair pair

func newTable() *pin.Table[pair] {
	t := pin.New[pin.Table[pair]]()
	t.Init(&noPair)
	return t
}

func newPair() *pair { return &pair{} }

// values returns the values of the table.
func values(t *pin.Table[pair]) (all []*pair) {
	t.Each(func(e *pair) { all = append(all, e) })
	return all
}

// Once Drain has taken a value, no goroutine uses it. No value is lost.
func TestDrainHasTheEntriesToItself(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(4, runtime.GOMAXPROCS(0))))
	table := newTable()
	var done atomic.Bool
	var uses atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for !done.Load() {
				slot := table.Enter()
				at := table.Slot(slot)
				used := false
				if e := at.Value(); e != &noPair {
					e.a++
					e.b++
					used = true
				}
				table.Leave(slot)
				if used {
					uses.Add(1)
				} else {
					table.Install(at, newPair)
				}
				runtime.Gosched()
			}
		})
	}
	sum := 0
	collect := func(taken []*pair) {
		for _, e := range taken {
			if e.a != e.b {
				t.Errorf("still in use: %v", *e)
			}
			sum += e.a
		}
		if n := len(values(table)); n != 0 {
			t.Errorf("%d values in the table during Drain", n)
		}
	}
	for range 200 {
		table.Drain(nil, collect)
		runtime.Gosched()
	}
	done.Store(true)
	wg.Wait()
	table.Drain(nil, collect)
	if int64(sum) != uses.Load() {
		t.Errorf("%d uses, %d in the values", uses.Load(), sum)
	}
}

// Drain forbids values, takes them, waits, and calls its function, in this order.
func TestDrainInOrder(t *testing.T) {
	table := newTable()
	own := table.Slot(2)
	table.Install(table.Slot(1), newPair)
	table.Install(own, newPair)
	empty := func(when string) {
		if table.Value(1) != &noPair || own.Value() != &noPair {
			t.Errorf("%s: a value is in its slot", when)
		}
		if table.Install(table.Slot(1), newPair) || table.Install(own, newPair) {
			t.Errorf("%s: a value was installed", when)
		}
	}
	waited := false
	defer pin.OnWait(func(h *pin.Holders) {
		if h == &table.Holders {
			empty("in Wait")
			waited = true
		}
	})()
	table.Drain(nil, func(taken []*pair) {
		if !waited || len(taken) != 2 {
			t.Errorf("waited: %t; %d values, want 2", waited, len(taken))
		}
		empty("in f")
	})
	if !table.Install(table.Slot(1), newPair) {
		t.Error("no value after Drain")
	}
}

// Two Drains at once forbid values until both have ended.
func TestDrainInADrain(t *testing.T) {
	table := newTable()
	table.Drain(nil, func([]*pair) {
		table.Drain(nil, func([]*pair) {})
		if table.Install(table.Slot(0), newPair) {
			t.Error("a value was installed")
		}
	})
	if !table.Install(table.Slot(0), newPair) {
		t.Error("no value after Drain")
	}
}

func TestDrainTakesWhatMatches(t *testing.T) {
	table := newTable()
	for i := range 4 {
		table.Install(table.Slot(i), func() *pair { return &pair{a: i} })
	}
	odd := func(e *pair) bool { return e.a%2 == 1 }
	if !table.Any(odd) {
		t.Error("no odd value before the Drain")
	}
	table.Drain(odd, func(taken []*pair) {
		if len(taken) != 2 || !odd(taken[0]) || !odd(taken[1]) {
			t.Errorf("took %v", taken)
		}
	})
	if table.Any(odd) || !table.Any(nil) {
		t.Errorf("left %d values, want 2 even ones", len(values(table)))
	}
}

func TestInstallFillsAnEmptySlot(t *testing.T) {
	table := newTable()
	if table.Install(table.Slot(0), func() *pair { return nil }) || table.Any(nil) {
		t.Error("nil was installed")
	}
	first := &pair{}
	if !table.Install(table.Slot(0), func() *pair { return first }) {
		t.Error("not installed in an empty slot")
	}
	if table.Install(table.Slot(0), newPair) || table.Value(0) != first {
		t.Error("installed over a value")
	}
}

func TestTakeEmptiesTheSlot(t *testing.T) {
	table := newTable()
	slot := table.Enter()
	table.Leave(slot)
	if got := table.Take(slot); got != &noPair {
		t.Error("a value out of an empty slot")
	}
	want := &pair{}
	table.Install(table.Slot(slot), func() *pair { return want })
	if got := table.Take(slot); got != want || table.Any(nil) {
		t.Error("the slot has its value still")
	}
}

// A processor beyond the table has no slot. All methods accept it.
func TestBeyondTheTable(t *testing.T) {
	table := newTable()
	beyond := table.Len()
	if table.Slot(beyond) != nil || table.Value(beyond) != &noPair || table.Take(beyond) != &noPair {
		t.Error("a slot beyond the table")
	}
	if table.Install(table.Slot(beyond), newPair) {
		t.Error("installed beyond the table")
	}
}

// The collector finds the values in tables of all sizes. New writes only to the table in the
// object.
func TestSlotsEndTheObject(t *testing.T) {
	type object struct {
		first [3]byte
		count atomic.Int64
		odd   [5]byte
		table pin.Table[pair]
	}
	type owner struct{ object } // a typed pool embeds Blocks like this
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, procs := range []int{1, 17, 65, 257} {
		runtime.GOMAXPROCS(procs)
		o := pin.New[owner]()
		table := &o.table
		table.Init(&noPair)
		values := make([]weak.Pointer[pair], table.Len())
		for i := range values {
			table.Install(table.Slot(i), func() *pair {
				e := &pair{a: i, b: i}
				values[i] = weak.Make(e)
				return e
			})
		}
		runtime.GC()
		for i, w := range values {
			if e := w.Value(); e == nil || e != table.Value(i) || *e != (pair{a: i, b: i}) {
				t.Fatalf("%d processors: the value of slot %d of %d is gone", procs, i, table.Len())
			}
		}
		if o.first != [3]byte{} || o.count.Load() != 0 || o.odd != [5]byte{} {
			t.Errorf("%d processors: the object is not zero", procs)
		}
	}
}

// A table that New did not make has no slots. All methods work.
func TestTableWithoutNew(t *testing.T) {
	var table pin.Table[pair]
	if table.Len() != 0 || table.Slot(0) != nil || table.Value(0) != nil {
		t.Error("a zero table has slots")
	}
	table.Init(&noPair)
	table.Drain(nil, func(taken []*pair) {
		if len(taken) != 0 {
			t.Errorf("took %v", taken)
		}
	})
	if table.Value(0) != &noPair || table.Take(0) != &noPair || table.Install(table.Slot(0), newPair) {
		t.Error("a table without slots has values")
	}
}

// A table has a slot for each processor of the machine or GOMAXPROCS, and few more.
func TestTableFitsTheMachine(t *testing.T) {
	if pin.Locked {
		t.Skip("slots are locks, whose number is fixed")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, procs := range []int{1, 16, 17, 100} {
		runtime.GOMAXPROCS(procs) // wasm stays at one
		need := max(runtime.GOMAXPROCS(0), runtime.NumCPU(), 16)
		if n := newTable().Len(); n < need || n >= 4*need {
			t.Errorf("%d slots for %d processors of %d", n, procs, runtime.NumCPU())
		}
	}
}
