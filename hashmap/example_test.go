package hashmap_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/hashmap"
	"github.com/freehold-go/freehold/intern"
)

func Example() {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	type point struct{ X, Y int32 }
	names := hashmap.New[point, string](heap, nil) // the strings are copied in
	defer names.Close()

	if err := names.Put(point{1, 2}, "home"); err != nil {
		panic(err) // out of memory; the map is as it was
	}
	name, ok := names.Get(point{1, 2})
	fmt.Println(name, ok, names.Len())
	fmt.Println(names.Delete(point{1, 2}), names.Len())
	// Output:
	// home true 1
	// true 0
}

// At counts in place: one search for each word that the map has.
func ExampleMap() {
	counts := hashmap.New[string, int](freehold.Default(), nil)
	defer counts.Close()
	for _, word := range []string{"to", "be", "or", "not", "to", "be"} {
		if n := counts.At(word); n != nil {
			*n++ // valid until the next Put
			continue
		}
		freehold.Must(0, counts.Put(word, 1))
	}
	sum := 0
	for _, n := range counts.All() {
		sum += n
	}
	to, _ := counts.Get("to")
	fmt.Println(counts.Len(), "words,", to, "times to,", sum, "in all")
	// Output:
	// 4 words, 2 times to, 6 in all
}

// A map under a limit stays whole when the limit is reached.
func ExampleMap_Put() {
	m := hashmap.New[int, [100]byte](freehold.NewLimit(freehold.Default(), 64<<10), nil)
	defer m.Close()
	for i := 0; ; i++ {
		if err := m.Put(i, [100]byte{}); err != nil {
			fmt.Println(errors.Is(err, freehold.ErrOutOfMemory), m.Len() == i)
			break
		}
	}
	_, ok := m.Get(0)
	fmt.Println(ok)
	// Output:
	// true true
	// true
}

func ExampleMap_Update() {
	m := hashmap.New[string, []byte](freehold.Default(), nil)
	defer m.Close()
	for _, s := range []string{"a", "b", "c"} {
		err := m.Update("log", func(v *[]byte, found bool) {
			*v = append(*v, s...) // what is left in v is copied in
		})
		if err != nil {
			panic(err)
		}
	}
	log, _ := m.Get("log")
	fmt.Printf("%s\n", log)
	// Output:
	// abc
}

func ExampleMap_GetMany() {
	m := hashmap.New[uint64, uint64](freehold.Default(), nil)
	defer m.Close()
	keys := []uint64{1, 2, 3}
	if err := m.PutMany(keys[:2], []uint64{10, 20}); err != nil {
		panic(err)
	}
	values, found := make([]uint64, 3), make([]bool, 3)
	m.GetMany(keys, values, found)
	fmt.Println(values, found)
	// Output:
	// [10 20 0] [true true false]
}

func ExampleGetBytes() {
	m := hashmap.New[string, int](freehold.Default(), nil)
	defer m.Close()
	line := []byte("key=1")
	freehold.Must(0, hashmap.PutBytes(m, line[:3], 1)) // copies the key
	fmt.Println(hashmap.GetBytes(m, line[:3]))         // copies nothing
	// Output:
	// 1 true
}

// Strings in a struct: an ID for those that repeat, and a freehold.String that the program
// frees for the others.
func ExampleMap_All() {
	type product struct {
		price  int64
		vendor intern.ID
		title  freehold.String
	}
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	vendors := intern.New(heap, nil)
	defer vendors.Close()
	products := hashmap.New[string, product](heap, nil)
	defer products.Close()

	vendor, err := vendors.Intern("ACME")
	if err != nil {
		panic(err)
	}
	title, err := freehold.CloneString(heap, "a large anvil")
	if err != nil {
		panic(err)
	}
	if err := products.Put("anvil-1", product{9900, vendor, freehold.StringOf(title)}); err != nil {
		freehold.FreeString(heap, title)
		panic(err)
	}

	for sku, p := range products.All() {
		fmt.Println(sku, p.price, vendors.Value(p.vendor), p.title.Get())
		freehold.FreeString(heap, p.title.Get()) // before Delete or Close
	}
	products.Clear()
	fmt.Println(products.Len())
	// Output:
	// anvil-1 9900 ACME a large anvil
	// 0
}

// A map in an arena ends with it: Close of the arena frees everything, whatever the map
// holds.
func ExampleNew() {
	scratch := arena.New(freehold.Default(), nil)
	defer scratch.Close()
	m := hashmap.New[string, string](scratch, nil)
	freehold.Must(0, m.Put("key", "value"))
	fmt.Println(m.Get("key"))
	// Output:
	// value true
}

// ExampleStats shows how full a map is.
func ExampleStats() {
	m := hashmap.New[uint32, uint32](freehold.Default(), &hashmap.Options{Name: "ids"})
	defer m.Close()
	freehold.Must(0, m.Put(1, 1))
	st := m.Stats()
	fmt.Println(st.Name, st.Len, "of", st.Slots, "slots are taken")
	// Output:
	// ids 1 of 16 slots are taken
}

// Grow takes the memory for that many entries at once, so that they cannot fail later.
func ExampleMap_Grow() {
	m := hashmap.New[uint64, uint64](freehold.Default(), nil)
	defer m.Close()

	if err := m.Grow(100_000); err != nil {
		fmt.Println(err)
		return
	}
	for i := range uint64(100_000) {
		freehold.Must(0, m.Put(i, i*i))
	}
	fmt.Println(m.Len(), m.Stats().Moved < 10_000) // growth moved few entries
	// Output: 100000 true
}

// Sets of keys and values in any order, sorted here.
func ExampleMap_Keys() {
	m := hashmap.New[string, int](freehold.Default(), nil)
	defer m.Close()

	for i, city := range []string{"Oslo", "Lima", "Oslo", "Kyiv"} {
		if first, found, err := m.PutIfAbsent(city, i); err != nil || found {
			fmt.Println(city, "was first at", first, err)
		}
	}
	fmt.Println(slices.Sorted(m.Keys()), slices.Sorted(m.Values()))
	// Output:
	// Oslo was first at 0 <nil>
	// [Kyiv Lima Oslo] [0 1 3]
}

// One process freezes a map, and any number of processes read the file.
func ExampleFreeze() {
	dir := freehold.Must(os.MkdirTemp("", "freehold"))
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "capitals")

	m := hashmap.New[string, string](freehold.Default(), nil)
	defer m.Close()
	freehold.Must(0, m.Put("France", "Paris"))
	freehold.Must(0, m.Put("Peru", "Lima"))
	if err := hashmap.Freeze(m.All(), path); err != nil {
		panic(err) // path has the old file, if there was one
	}

	capitals, err := hashmap.OpenFrozen[string, string](path)
	if err != nil {
		panic(err)
	}
	defer capitals.Close()
	capital, ok, err := capitals.Get("Peru")
	fmt.Println(capital, ok, err, capitals.Len())
	// Output:
	// Lima true <nil> 2
}
