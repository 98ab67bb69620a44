package subject

import (
	"encoding/binary"
	"encoding/hex"
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
	Memory string // a name in Memories
	About  string
	Entry  int64 // bytes of memory that an entry takes, about
	Open   func(n int) (*Data, error)
}

// Data has up to n entries, none at first.
type Data struct {
	Put     func(i int) error // adds entry i; they come in order
	Checks  func() int        // how many numbers Check takes
	Check   func(i int) error // that what was put is there
	OffHeap func() int64      // bytes
	Close   func()
}

// Memories are where entries are kept, and what reports call that.
var Memories = []struct{ Name, Title string }{
	{"go", "Go heap"},
	{"flat", "flat"}, // on the Go heap, without pointers
	{"freehold", "freehold"},
}

// Shapes are all of them.
var Shapes = []Shape{
	{"array", "array of pointers", []Store{
		{"go", "[]*uint64, a value for each pointer", 16, func(n int) (*Data, error) {
			a := make([]*uint64, n)
			return onHeap(func(i int) error {
				v := valueOf(i)
				a[i] = &v
				return nil
			}, func() int { return n }, func(i int) error {
				if a[i] == nil {
					return same(i, 0)
				}
				return same(i, *a[i])
			}), nil
		}},
		{"flat", "[]uint64, on the Go heap", 8, func(n int) (*Data, error) { return values(make([]uint64, n)), nil }},
		{"freehold", "[]uint64, from freehold.MakeSlice", 8, func(n int) (*Data, error) {
			h := newHeap()
			a, err := freehold.MakeSlice[uint64](h, n)
			return offHeap(h, values(a), func() { freehold.FreeSlice(h, a) }), err
		}},
	}},
	{"nodes", "objects linked by pointers", []Store{
		{"go", fmt.Sprintf("structs of %d bytes in linked lists, %d at once", NodeBytes, nodeLists), 64, openGoNodes},
		{"flat", "the same structs in a slice, linked by indices", NodeBytes, openFlatNodes},
		{"freehold", "the same structs from freehold.New, linked by freehold.Ptr", 64, openOffNodes},
	}},
	{"map", "map of strings", []Store{
		{"go", "map[string]uint64, keys of 16 bytes", 64, func(n int) (*Data, error) {
			m := make(map[string]uint64, n)
			return onHeap(func(i int) error {
				key := keyOf(i)
				m[string(key[:])] = valueOf(i)
				return nil
			}, func() int { return len(m) }, func(i int) error {
				key := keyOf(i)
				return same(i, m[string(key[:])])
			}), nil
		}},
		{"flat", "map[[16]byte]uint64, on the Go heap", 56, func(n int) (*Data, error) {
			m := make(map[keyText]uint64, n)
			return onHeap(func(i int) error {
				m[keyOf(i)] = valueOf(i)
				return nil
			}, func() int { return len(m) }, func(i int) error { return same(i, m[keyOf(i)]) }), nil
		}},
		{"freehold", "hashmap.Map[string, uint64]", 64, func(n int) (*Data, error) {
			h := newHeap()
			m := hashmap.New[string, uint64](h, nil)
			return offHeap(h, onHeap(func(i int) error {
				key := keyOf(i)
				return hashmap.PutBytes(m, key[:], valueOf(i))
			}, m.Len, func(i int) error {
				key := keyOf(i)
				v, _ := hashmap.GetBytes(m, key[:])
				return same(i, v)
			}), m.Close), m.Grow(n)
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
			}, func() int { return len(all) }, func(i int) error {
				number, ok := numbers[all[i]]
				return sameString(i, all[i], number, ok)
			}), nil
		}},
		{"freehold", "intern.Strings", 48, func(int) (*Data, error) {
			h := newHeap()
			all := intern.New(h, nil)
			return offHeap(h, onHeap(func(i int) error {
				key := keyOf(i)
				_, err := all.InternBytes(key[:])
				return err
			}, all.Len, func(i int) error {
				s := all.Value(intern.ID(i))
				id, ok := all.Lookup(s)
				return sameString(i, s, uint32(id), ok)
			}), all.Close), nil
		}},
	}},
}

func newHeap() *freehold.Heap { return freehold.NewHeap(&freehold.HeapOptions{Name: "lab"}) }

// onHeap is data that the collector frees.
func onHeap(put func(i int) error, checks func() int, check func(i int) error) *Data {
	return &Data{put, checks, check, func() int64 { return 0 }, func() {}}
}

// offHeap is data that free frees, on a heap of its own.
func offHeap(h *freehold.Heap, d *Data, free func()) *Data {
	d.OffHeap = func() int64 { return int64(h.Stats().Committed) }
	d.Close = func() {
		free()
		h.Close()
	}
	return d
}

func values(a []uint64) *Data {
	return onHeap(func(i int) error {
		a[i] = valueOf(i)
		return nil
	}, func() int { return len(a) }, func(i int) error { return same(i, a[i]) })
}

// Nodes are linked in many lists at once, so that a collector can follow many of them:
//
//	list 0   -> node 2*lists   -> node lists   -> node 0
//	list 1   -> node 2*lists+1 -> node lists+1 -> node 1
//
// The neighbours in a list are far apart in memory, as they are in maps and trees that have grown.
const nodeLists = 4096

func openGoNodes(int) (*Data, error) {
	var heads [nodeLists]*goNode
	return nodes(func(i int) error {
		head := &heads[i%nodeLists]
		*head = &goNode{key: uint64(i), next: *head}
		return nil
	}, func(list int, key func(uint64) bool) {
		for p := heads[list]; p != nil && key(p.key); p = p.next {
		}
	}), nil
}

// A flatNode holds what a goNode holds, but for the kind of link.
type flatNode struct {
	key     uint64
	payload [40]byte
	next    uint64 // index of the next node, plus 1
}

func openFlatNodes(n int) (*Data, error) {
	all := make([]flatNode, 0, n)
	var heads [nodeLists]uint64 // as flatNode.next
	return nodes(func(i int) error {
		head := &heads[i%nodeLists]
		all = append(all, flatNode{key: uint64(i), next: *head})
		*head = uint64(len(all))
		return nil
	}, func(list int, key func(uint64) bool) {
		for at := heads[list]; at != 0 && key(all[at-1].key); at = all[at-1].next {
		}
	}), nil
}

func openOffNodes(int) (*Data, error) {
	h := newHeap()
	var heads [nodeLists]freehold.Ptr[offNode]
	return offHeap(h, nodes(func(i int) error {
		p, err := freehold.New[offNode](h)
		if err != nil {
			return err
		}
		head := &heads[i%nodeLists]
		p.key, p.next = uint64(i), *head
		*head = freehold.PtrTo(p)
		return nil
	}, func(list int, key func(uint64) bool) {
		for p := heads[list].Get(); p != nil && key(p.key); p = p.next.Get() {
		}
	}), func() {}), nil
}

// nodes is data in lists. walk passes the keys of a list on, from its head, until key
// returns false.
func nodes(put func(i int) error, walk func(list int, key func(uint64) bool)) *Data {
	n := 0
	return onHeap(func(i int) error {
		n = i + 1
		return put(i)
	}, func() int { return min(n, nodeLists) }, func(list int) (err error) {
		want := list + (n-list-1)/nodeLists*nodeLists // the last number that is list's
		walk(list, func(got uint64) bool {
			if want < 0 || got != uint64(want) {
				err = fmt.Errorf("list %d has a node with the key %d out of order", list, got)
			}
			want -= nodeLists
			return err == nil
		})
		if err == nil && want >= 0 {
			err = fmt.Errorf("list %d ends before the node with the key %d", list, want)
		}
		return err
	})
}

// same verifies the value of entry i.
func same(i int, got uint64) error {
	if want := valueOf(i); got != want {
		return fmt.Errorf("entry %d holds %#x, where %#x was written", i, got, want)
	}
	return nil
}

// sameString verifies that string i has its number.
func sameString(i int, s string, number uint32, ok bool) error {
	if want := keyOf(i); s != string(want[:]) || !ok || number != uint32(i) {
		return fmt.Errorf("string %d is %q, and has the number %d (%v)", i, s, number, ok)
	}
	return nil
}

// A keyText is the key of an entry: 16 hexadecimal digits.
type keyText [16]byte

// keyOf returns the key of entry i, which no other entry has.
func keyOf(i int) (key keyText) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], valueOf(i))
	hex.Encode(key[:], b[:])
	return key
}

// valueOf returns the value of entry i, which no other entry has: splitmix64.
func valueOf(i int) uint64 {
	x := (uint64(i) + 1) * 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
