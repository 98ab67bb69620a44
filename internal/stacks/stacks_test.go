package stacks

import (
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/freehold-go/freehold/internal/vm"
)

var table Table

//go:noinline
func first(label uint32) ID { return table.Capture(label) }

//go:noinline
func second(label uint32) ID { return table.Capture(label) }

func inlined(label uint32) ID { return first(label) }

//go:noinline
func deep(n int, label uint32) ID {
	if n > 0 {
		return deep(n-1, label)
	}
	return first(label)
}

// names returns the functions of a stack, without their packages.
func names(id ID) (all []string, label uint32) {
	pcs, label := table.Stack(id)
	frames := runtime.CallersFrames(pcs)
	for {
		f, more := frames.Next()
		all = append(all, f.Function[strings.LastIndexByte(f.Function, '.')+1:])
		if !more {
			return all, label
		}
	}
}

// The same stack with the same label has one ID. Any other stack or label has another.
func TestEqualStacksHaveOneID(t *testing.T) {
	seen := map[ID]bool{}
	for _, label := range []uint32{0, 1, 1 << 20} {
		a := []ID{}
		for range 3 {
			a = append(a, first(label), second(label), inlined(label), deep(3, label), deep(4, label))
		}
		for i, id := range a {
			if id == Other || id != a[i%5] {
				t.Errorf("label %d: IDs %d", label, a)
			}
			seen[id] = true
		}
	}
	if len(seen) != 3*5 {
		t.Errorf("%d IDs of 15 stacks", len(seen))
	}
}

// A stack has the functions from the caller on, inlined ones included.
func TestStack(t *testing.T) {
	for range 2 { // a new stack, then a known one
		got, label := names(inlined(7))
		if text := strings.Join(got, " "); !strings.Contains(text+" ", "first inlined TestStack tRunner ") || label != 7 {
			t.Errorf("%q, label %d", text, label)
		}
	}
	if pcs, label := table.Stack(Other); pcs != nil || label != 0 {
		t.Errorf("other: %v, label %d", pcs, label)
	}
}

// A deep stack keeps its innermost frames. The frames behind them do not matter.
func TestDeepStack(t *testing.T) {
	id := deep(2*MaxFrames, 0)
	got, _ := names(id)
	if len(got) != MaxFrames || got[MaxFrames-1] != "deep" {
		t.Errorf("%d frames: %v", len(got), got)
	}
	if other := deep(2*MaxFrames+1, 0); other != id {
		t.Errorf("IDs %d and %d", id, other)
	}
}

// A full table returns Other for new stacks and still finds old ones.
func TestFullTable(t *testing.T) {
	var full Table
	capture := func(label uint32) ID { return full.Capture(label) }
	ids := map[ID]uint32{}
	for label := range uint32(Max + 100) {
		id := capture(label)
		if id == Other {
			if label < Max-1 {
				t.Fatalf("no room for stack %d", label)
			}
			continue
		}
		ids[id] = label
	}
	if len(ids) != Max-1 || full.Len() != Max-1 {
		t.Errorf("%d IDs, and %d stacks", len(ids), full.Len())
	}
	for id, label := range ids {
		if _, got := full.Stack(id); got != label {
			t.Fatalf("stack %d has label %d, want %d", id, got, label)
		}
	}
}

// The table is also full when the words run out before the IDs.
func TestFullOfWords(t *testing.T) {
	var full Table
	var capture func(n int, label uint32) ID
	capture = func(n int, label uint32) ID {
		if n > 0 {
			return capture(n-1, label)
		}
		return full.Capture(label)
	}
	n := 0
	for capture(MaxFrames, uint32(n)) != Other {
		n++
	}
	if want := maxWords / MaxFrames; n != want {
		t.Errorf("%d stacks of %d frames, want %d", n, MaxFrames, want)
	}
}

// If several goroutines capture a new stack at once, it is added once.
func TestCaptureByManyGoroutines(t *testing.T) {
	before := table.Len()
	base := uint32(1000 + before) // labels that earlier runs of the test have not used
	var mu sync.Mutex
	ids := map[ID]bool{}
	var wg sync.WaitGroup
	f := func() {
		for label := range uint32(500) {
			id := first(base + label)
			if _, got := table.Stack(id); got != base+label {
				t.Errorf("label %d, want %d", got, base+label)
			}
			mu.Lock()
			ids[id] = true
			mu.Unlock()
		}
		wg.Done()
	}
	for range 8 {
		wg.Add(1)
		go f()
	}
	wg.Wait()
	if n := table.Len() - before; n != 500 || len(ids) != 500 {
		t.Errorf("%d stacks and %d IDs, want 500", n, len(ids))
	}
}

// If two goroutines have missed a stack, the second to add it finds it.
func TestStackIsAddedOnce(t *testing.T) {
	var table Table
	if a, b := table.add(1, 0), table.add(1, 0); a == Other || a != b || table.Len() != 1 {
		t.Errorf("IDs %d and %d of %d", a, b, table.Len())
	}
}

// Relabel returns the ID that Capture returns for the other label. It has the same program
// counters and needs no further words.
func TestRelabel(t *testing.T) {
	var table Table
	capture := func(label uint32) ID { return table.Capture(label) } // one stack
	var a, b ID
	for i := range 2 {
		id := capture(uint32(i))
		if a, b = b, id; i == 1 && table.Relabel(a, 1) != b {
			t.Errorf("stack %d is %d with the label of %d", a, table.Relabel(a, 1), b)
		}
	}
	words, n := table.words, table.Len()
	c := table.Relabel(a, 7)
	if c == a || c == b || table.Relabel(a, 7) != c || table.Relabel(c, 0) != a || table.Relabel(c, 7) != c {
		t.Errorf("IDs %d, %d, %d", a, b, c)
	}
	was, _ := table.Stack(a)
	if pcs, label := table.Stack(c); label != 7 || !slices.Equal(pcs, was) {
		t.Errorf("label %d, %v, want %v", label, pcs, was)
	}
	if table.words != words || table.Len() != n+1 {
		t.Errorf("%d words more, %d stacks more", table.words-words, table.Len()-n)
	}
	if id := table.Relabel(Other, 3); id != Other {
		t.Errorf("Other is %d with a label", id)
	}
}

// Relabel in a full table still finds existing labels.
func TestRelabelInAFullTable(t *testing.T) {
	var full Table
	id := full.Capture(0)
	for label := uint32(1); full.Relabel(id, label) != Other; label++ {
	}
	if n := full.Len(); n != Max-1 || full.Relabel(id, 5) == Other || full.Relabel(id, Max) != Other {
		t.Errorf("%d stacks", n)
	}
}

// Without memory Capture returns Other. Later, with memory, it adds the stack.
func TestNoMemory(t *testing.T) {
	var table Table
	for _, op := range []vm.Op{vm.OpReserve, vm.OpCommit} {
		restore := vm.SetFault(func(o vm.Op) error {
			if o == op {
				return syscall.ENOMEM
			}
			return nil
		})
		id := table.Capture(0)
		restore()
		if id != Other || table.Len() != 0 {
			t.Errorf("%v refused: ID %d of %d", op, id, table.Len())
		}
	}
	if id := table.Capture(0); id == Other || table.Len() != 1 {
		t.Errorf("ID %d of %d", id, table.Len())
	}
}

// Capture allocates nothing on the Go heap.
func TestCaptureLeavesGoHeapAlone(t *testing.T) {
	first(0)
	if n := testing.AllocsPerRun(100, func() { first(0) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkCapture(b *testing.B) {
	var capture func(n int) ID
	capture = func(n int) ID {
		if n > 0 {
			return capture(n - 1)
		}
		return table.Capture(0)
	}
	for _, frames := range []struct {
		name string
		n    int
	}{{"frames=4", 0}, {"frames=13", 9}, {"frames=28", 24}} {
		b.Run(frames.name, func(b *testing.B) {
			for b.Loop() {
				capture(frames.n)
			}
		})
	}
}
