package btree_test

import (
	"cmp"
	"fmt"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/btree"
)

func ExampleMap() {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	prices := btree.New[uint64, float64](heap, nil)
	defer prices.Close()

	for day, price := range []float64{41.5, 42, 40.25, 43} {
		if err := prices.Put(uint64(20260101+day), price); err != nil {
			fmt.Println(err)
			return
		}
	}
	for day, price := range prices.Range(20260102, 20260104) {
		fmt.Println(day, price)
	}
	for day, price := range prices.BackwardFrom(20251231 + 10000) {
		fmt.Println("the last one:", day, price)
		break
	}
	// Output:
	// 20260102 42
	// 20260103 40.25
	// the last one: 20260104 43
}

// Two maps are merged by a cursor of each.
func ExampleMap_Cursor() {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	old, new := btree.New[int, float64](heap, nil), btree.New[int, float64](heap, nil)
	defer old.Close()
	defer new.Close()
	for day := range 4 {
		_, _ = old.Put(2*day, 40), new.Put(3*day, 43)
	}

	a, b := old.Cursor(), new.Cursor()
	moreA, moreB := a.Seek(2), b.Seek(2)
	for moreA || moreB {
		if moreA && (!moreB || a.Key() < b.Key()) {
			fmt.Println(a.Key(), *a.Value())
			moreA = a.Next()
			continue
		}
		fmt.Println(b.Key(), *b.Value())
		if moreA && a.Key() == b.Key() {
			moreA = a.Next() // the new price replaces the old one
		}
		moreB = b.Next()
	}
	// Output:
	// 2 40
	// 3 43
	// 4 40
	// 6 43
	// 9 43
}

// The keys are copied: they may come from a buffer that is used again.
func ExampleNew_strings() {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	words := btree.New[string, int](heap, nil)
	defer words.Close()

	for _, word := range []string{"tree", "leaf", "node", "leaf", "tree", "leaf"} {
		err := words.Update(word, func(count *int, _ bool) { *count++ })
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	for word, count := range words.All() {
		fmt.Println(word, count)
	}
	// Output:
	// leaf 3
	// node 1
	// tree 2
}

// Keys of several parts, in the order of the parts.
func ExampleNewFunc() {
	type reading struct {
		sensor uint32
		at     int64
	}
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	readings := btree.NewFunc[reading, float32](heap, func(a, b reading) int {
		return cmp.Or(cmp.Compare(a.sensor, b.sensor), cmp.Compare(a.at, b.at))
	}, nil)
	defer readings.Close()

	for i := range 6 {
		_ = readings.Put(reading{uint32(i % 2), int64(i)}, float32(i)/2)
	}
	for r, degrees := range readings.Range(reading{sensor: 1}, reading{sensor: 2}) {
		fmt.Println(r.at, degrees)
	}
	// Output:
	// 1 0.5
	// 3 1.5
	// 5 2.5
}

// Entries expire by their values: those below a time go, in one walk over all of them.
func ExampleMap_DeleteFunc() {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	sessions := btree.New[uint64, int64](heap, nil) // the time of the last request
	defer sessions.Close()

	for id := range uint64(10) {
		_ = sessions.Put(id, int64(1000+id))
	}
	gone := sessions.DeleteFunc(func(_ uint64, last *int64) bool { return *last < 1007 })
	fmt.Println(gone, "expired")
	for id := range sessions.All() {
		fmt.Println(id)
	}
	// Output:
	// 7 expired
	// 7
	// 8
	// 9
}

// What is older than a time goes, by its key.
func ExampleMap_DeleteRange() {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	events := btree.New[int64, uint32](heap, nil)
	defer events.Close()

	for second := range int64(10) {
		_ = events.Put(1767225600+second, uint32(second))
	}
	if oldest, _, ok := events.Min(); ok {
		gone := events.DeleteRange(oldest, 1767225600+7)
		fmt.Println(gone, "deleted")
	}
	for at, event := range events.All() {
		fmt.Println(at, event)
	}
	// Output:
	// 7 deleted
	// 1767225607 7
	// 1767225608 8
	// 1767225609 9
}

// The keys from lo on, below hi.
func ExampleMap_Range() {
	ages := btree.New[string, int](freehold.Default(), nil)
	defer ages.Close()
	for age, name := range []string{30: "ann", 40: "bob", 50: "eve"} {
		if name != "" {
			_ = ages.Put(name, age)
		}
	}

	for name, age := range ages.Range("ann", "eve") {
		fmt.Println(name, age)
	}
	// Output:
	// ann 30
	// bob 40
}

// The key that is asked for or the next one, as a reader of time series wants it.
func ExampleMap_From() {
	prices := btree.New[int64, float64](freehold.Default(), nil)
	defer prices.Close()
	_ = prices.Put(900, 41.5)
	_ = prices.Put(1700, 43)

	for at, price := range prices.From(1000) {
		fmt.Println("after 1000:", at, price)
		break
	}
	// Output: after 1000: 1700 43
}

// The last entries first.
func ExampleMap_Backward() {
	prices := btree.New[int, float64](freehold.Default(), nil)
	defer prices.Close()
	for day, price := range []float64{41.5, 42, 40.25} {
		_ = prices.Put(day, price)
	}

	for day, price := range prices.Backward() {
		fmt.Println(day, price)
		if day == 1 {
			break
		}
	}
	// Output:
	// 2 40.25
	// 1 42
}

// One search finds the value, or makes a zero one, and changes it.
func ExampleMap_Update() {
	type total struct{ n, bytes int }
	sizes := btree.New[string, total](freehold.Default(), nil)
	defer sizes.Close()

	for _, request := range []string{"/a", "/b", "/a"} {
		err := sizes.Update(request, func(t *total, found bool) {
			t.n++
			t.bytes += 100
		})
		if err != nil { // memory is short, and a new entry was needed
			fmt.Println(err)
			return
		}
	}
	a, _ := sizes.Get("/a")
	fmt.Println(a.n, "requests,", a.bytes, "bytes")
	// Output: 2 requests, 200 bytes
}

// A queue by priority: the largest key leaves first, and a key that is there keeps its value.
func ExampleMap_Compute() {
	users := btree.New[string, int](freehold.Default(), nil)
	defer users.Close()
	_ = users.Put("/a", 1)

	// The last user of a file removes its entry.
	was, _, _ := users.Compute("/a", func(n *int, found bool) freehold.Change {
		if *n--; *n > 0 {
			return freehold.Store
		}
		return freehold.Remove
	})
	fmt.Println(was, "before,", users.Len(), "files left")
	// Output: 1 before, 0 files left
}

func ExampleMap_Take() {
	waiting := btree.New[int, int](freehold.Default(), nil)
	defer waiting.Close()
	_ = waiting.Put(1700000000, 7)
	job, found := waiting.Take(1700000000)
	fmt.Println(job, found, waiting.Len())
	// Output: 7 true 0
}

func ExampleMap_GetAt() {
	scores := btree.New[int, int](freehold.Default(), &btree.Options{Ranks: true})
	defer scores.Close()
	for i := range 1000 {
		_ = scores.Put(i*i, i)
	}
	median, _, _ := scores.GetAt(scores.Len() / 2)
	less, found := scores.Rank(100)
	fmt.Println(median, less, found)
	// Output: 250000 10 true
}

func ExampleMap_Max() {
	jobs := btree.New[int, int](freehold.Default(), nil)
	defer jobs.Close()

	for id, priority := range []int{3, 9, 3, 5} {
		if first, found, err := jobs.PutIfAbsent(priority, id); err != nil || found {
			fmt.Println("priority", priority, "is that of job", first, err)
		}
	}
	for range 2 {
		priority, id, _ := jobs.Max()
		jobs.Delete(priority)
		fmt.Println("job", id, "of priority", priority)
	}
	// Output:
	// priority 3 is that of job 0 <nil>
	// job 1 of priority 9
	// job 3 of priority 5
}

// At points to a value in the map, valid until an entry is inserted or deleted.
func ExampleMap_At() {
	visits := btree.New[string, int](freehold.Default(), nil)
	defer visits.Close()

	if err := visits.Put("/", 1); err != nil {
		fmt.Println(err)
		return
	}
	*visits.At("/") += 10
	n, _ := visits.Get("/")
	fmt.Println(n, visits.At("/none") == nil)
	// Output: 11 true
}

// How full the nodes are, and how many a Get reads.
func ExampleMap_Stats() {
	m := btree.New[uint64, uint64](freehold.Default(), &btree.Options{Name: "index"})
	defer m.Close()

	for i := range uint64(100_000) {
		if err := m.Put(i, i); err != nil {
			fmt.Println(err)
			return
		}
	}
	st := m.Stats()
	fmt.Println(st.Name, st.Len, st.Height, "levels")
	fmt.Println(st.Slots < st.Len*11/10, st.Reserved < st.Len*20) // in the order of keys, nodes become full
	// Output:
	// index 100000 3 levels
	// true true
}

// A clone keeps the entries of yesterday while the map changes.
func ExampleMap_Clone() {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	prices := btree.New[string, int](heap, nil)
	defer prices.Close()
	for i, name := range []string{"bread", "milk", "salt"} {
		if err := prices.Put(name, i+1); err != nil {
			panic(err)
		}
	}

	yesterday := prices.Clone()
	defer yesterday.Close()
	if err := prices.Put("milk", 7); err != nil {
		panic(err)
	}
	for name, price := range yesterday.All() {
		now, _ := prices.Get(name)
		fmt.Println(name, price, now)
	}
	// Output:
	// bread 1 1
	// milk 2 7
	// salt 3 3
}
