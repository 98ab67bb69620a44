package subject

import (
	"fmt"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/hashmap"
	"github.com/freehold-go/freehold/intern"
)

// A Shape is one kind of data that is kept live.
type Shape struct {
	Name, Title string
	Stores      []Store // the first is on the Go heap, with pointers
}

// Entries returns how many entries take live bytes on the Go heap with pointers: the
// same number in every memory.
func (s Shape) Entries(live int64) int { return int(live / s.Stores[0].Entry) }

// A Store is one way to keep a shape's entries.
type Store struct {
	Memory string // go, flat (the Go heap without pointers) or freehold
	About  string
	Entry  int64                      // bytes of memory that an entry takes, about
	Open   func(n int) (*Data, error) // for n entries
}

// LiveMemories are the memories of stores.
var LiveMemories = []string{"go", "flat", "freehold"}

// liveLists are linked at once, so that a collector can follow many of them. The neighbours in a
// list are far apart in memory, as they are in maps and trees that have grown.
const liveLists = 4096

// Shapes are all of them.
var Shapes = []Shape{
	{"array", "array of pointers", []Store{
		{"go", "[]*uint64, a value for each pointer", 16, func(n int) (*Data, error) {
			a := make([]*uint64, n)
			return onHeap(func(i int) error {
				v := uint64(i) + 1
				a[i] = &v
				return nil
			}, func() (sum uint64) {
				for _, p := range a {
					if p != nil {
						sum += *p
					}
				}
				return sum
			}, func() { a = nil }), nil
		}},
		{"flat", "[]uint64, on the Go heap", 8, func(n int) (*Data, error) {
			a := make([]uint64, n)
			return onHeap(numbersIn(a), sumIn(a), func() {}), nil
		}},
		{"freehold", "[]uint64, from freehold.MakeSlice", 8, func(n int) (*Data, error) {
			h, _ := openFreehold(0)
			a, err := freehold.MakeSlice[uint64](h, n)
			return in(h, numbersIn(a), sumIn(a), func() { freehold.FreeSlice(h, a) }), err
		}},
	}},
	{"nodes", "objects linked by pointers", []Store{
		{"go", fmt.Sprintf("structs of %d bytes in linked lists, %d at once", NodeBytes, liveLists), 64, func(int) (*Data, error) { return goList(liveLists), nil }},
		{"flat", "the same structs in a slice, linked by indices", NodeBytes, func(n int) (*Data, error) { return flatList(liveLists, n), nil }},
		{"freehold", "the same structs from freehold.New, linked by freehold.Ptr", 64, func(int) (*Data, error) {
			h, err := openFreehold(0)
			return offList(h, liveLists), err
		}},
	}},
	{"map", "map of strings", []Store{
		{"go", "map[string]uint64, keys of 16 bytes", 64, func(n int) (*Data, error) {
			m := make(map[string]uint64, n)
			return onHeap(func(i int) error {
				key := keyOf(i)
				m[string(key[:])] = uint64(i) + 1
				return nil
			}, sumOfMap(m), func() { clear(m) }), nil
		}},
		{"flat", "map[[16]byte]uint64, on the Go heap", 56, func(n int) (*Data, error) {
			m := make(map[keyText]uint64, n)
			return onHeap(func(i int) error {
				m[keyOf(i)] = uint64(i) + 1
				return nil
			}, sumOfMap(m), func() { clear(m) }), nil
		}},
		{"freehold", "hashmap.Map[string, uint64]", 64, func(n int) (*Data, error) {
			h, _ := openFreehold(0)
			m := hashmap.New[string, uint64](h, nil)
			return in(h, func(i int) error {
				key := keyOf(i)
				return hashmap.PutBytes(m, key[:], uint64(i)+1)
			}, func() (sum uint64) {
				for v := range m.Values() {
					sum += v
				}
				return sum
			}, m.Close), m.Grow(n)
		}},
	}},
	{"strings", "numbered strings", []Store{
		{"go", "map[string]uint32 and []string, strings of 16 bytes", 80, func(n int) (*Data, error) {
			numbers, all := make(map[string]uint32, n), make([]string, 0, n)
			return onHeap(func(i int) error {
				key := keyOf(i)
				s := string(key[:])
				numbers[s] = uint32(i)
				all = append(all, s)
				return nil
			}, func() (sum uint64) {
				for i, s := range all[:len(numbers)] {
					sum += numberOf(i, s)
				}
				return sum
			}, func() { numbers, all = nil, nil }), nil
		}},
		{"freehold", "intern.Strings", 48, func(int) (*Data, error) {
			h, _ := openFreehold(0)
			all := intern.New(h, nil)
			return in(h, func(i int) error {
				key := keyOf(i)
				_, err := all.InternBytes(key[:])
				return err
			}, func() (sum uint64) {
				for id, s := range all.All() {
					sum += numberOf(int(id), s)
				}
				return sum
			}, all.Close), nil
		}},
	}},
}

// ShapeNames are the names of all shapes.
func ShapeNames() (names []string) {
	for _, s := range Shapes {
		names = append(names, s.Name)
	}
	return names
}

func numbersIn(a []uint64) func(i int) error {
	return func(i int) error {
		a[i] = uint64(i) + 1
		return nil
	}
}

func sumIn(a []uint64) func() uint64 {
	return func() (sum uint64) {
		for _, v := range a {
			sum += v
		}
		return sum
	}
}

func sumOfMap[K comparable](m map[K]uint64) func() uint64 {
	return func() (sum uint64) {
		for _, v := range m {
			sum += v
		}
		return sum
	}
}

// numberOf returns the number of string i, 0 if s is not its key.
func numberOf(i int, s string) uint64 {
	if key := keyOf(i); s != string(key[:]) {
		return 0
	}
	return uint64(i) + 1
}
