package pin

import (
	"runtime"
	"sync"
	"testing"

	"github.com/freehold-go/freehold/internal/test/await"
)

// A Drain takes no value while Each is under way.
func TestDrainWaitsForEach(t *testing.T) {
	var none byte
	table := New[Table[byte]]()
	table.Init(&none)
	table.Install(table.Slot(0), func() *byte { return new(byte) })
	drained := make(chan bool, 1)
	table.Each(func(*byte) {
		go func() {
			table.Drain(nil, func([]*byte) {})
			drained <- true
		}()
		if !await.Lock("takeAll", drained) || table.At(0).Value() == &none {
			t.Error("a value was taken during Each")
		}
	})
	<-drained
}

// A slot's holder may take the value while a Drain looks at it. Then the Drain gets neither this
// value nor another one in its place.
func TestEntryThatItsHolderTookFirst(t *testing.T) {
	var none byte
	table := New[Table[byte]]()
	table.Init(&none)
	table.Install(table.Slot(0), func() *byte { return new(byte) })
	took := &none
	table.Drain(func(*byte) bool {
		took = table.Take(0)
		return true
	}, func(taken []*byte) {
		if len(taken) != 0 {
			t.Errorf("Drain has %d values of a table without one", len(taken))
		}
	})
	if took == &none {
		t.Error("the holder has not got its value")
	}
}

// match is not called with none, since none is not a value.
func TestMatchIsNotAskedAboutNone(t *testing.T) {
	var none byte
	table := New[Table[byte]]()
	table.Init(&none)
	table.Install(table.Slot(0), func() *byte { return new(byte) })
	match := func(e *byte) bool {
		if e == &none {
			t.Error("asked about none")
		}
		return false
	}
	table.Any(match)
	table.Drain(match, func([]*byte) {})
}

// Processors beyond the largest table have no slot.
func TestLargestTable(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(maxSlots + 1)) // wasm stays at one
	if n := New[Table[byte]]().Len(); n > maxSlots {
		t.Errorf("%d slots, of which there are %d", n, maxSlots)
	}
}

// Stripes are in range, and goroutines are spread over them.
func TestStripes(t *testing.T) {
	const bits = 5
	var mu sync.Mutex
	counts := map[uint32]int{}
	var wg sync.WaitGroup
	end := make(chan bool) // closed when all goroutines have their stacks
	for range 1000 {
		wg.Add(1)
		go func() {
			stripe := Stripe(bits)
			mu.Lock()
			counts[stripe]++
			mu.Unlock()
			wg.Done()
			<-end
		}()
	}
	wg.Wait()
	close(end)
	for stripe := range counts {
		if stripe >= 1<<bits {
			t.Fatalf("stripe %d of %d", stripe, 1<<bits)
		}
	}
	if len(counts) < 1<<bits/2 {
		t.Errorf("1000 goroutines are in %d of %d stripes: %v", len(counts), 1<<bits, counts)
	}
}
