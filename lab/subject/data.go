package subject

import (
	"encoding/binary"
	"encoding/hex"
	"reflect"
	"runtime"

	"github.com/freehold-go/freehold"
)

// Data is some entries, none at first.
type Data struct {
	Put   func(i int) error // adds entry i; they come in order
	Sum   func() uint64     // of the numbers of all that was put, as SumOf
	Free  func()
	Live  func() int   // blocks by the memory's own figures, 0 if it has none
	Bytes func() int64 // in live blocks off-heap, likewise
}

// SumOf returns the sum of the numbers of n entries, from 1 on.
func SumOf(n int) uint64 { return uint64(n) * uint64(n+1) / 2 }

// onHeap is data that the collector frees once drop has dropped it.
func onHeap(put func(i int) error, sum func() uint64, drop func()) *Data {
	free := func() {
		drop()
		runtime.GC() // the only way to take it back
	}
	return &Data{put, sum, free, func() int { return 0 }, func() int64 { return 0 }}
}

// in is data in a memory.
func in(a *Allocator, put func(i int) error, sum func() uint64, free func()) *Data {
	return &Data{put, sum, free, a.Live, a.Bytes}
}

// A goNode holds what an offNode and a flatNode hold, but for the kind of link.
type goNode struct {
	key     uint64
	payload [40]byte
	next    *goNode
}

type offNode struct {
	key     uint64
	payload [40]byte
	next    freehold.Ptr[offNode]
}

type flatNode struct {
	key     uint64
	payload [40]byte
	next    uint64 // index of the next node, plus 1
}

// NodeBytes is the size of a node.
var NodeBytes = int64(reflect.TypeFor[goNode]().Size())

// goList is heads lists on the Go heap, a power of two.
func goList(heads int) *Data {
	first := make([]*goNode, heads)
	return onHeap(func(i int) error {
		head := &first[i&(heads-1)]
		*head = &goNode{key: uint64(i) + 1, next: *head}
		return nil
	}, func() (sum uint64) {
		for _, p := range first {
			for ; p != nil; p = p.next {
				sum += p.key
			}
		}
		return sum
	}, func() { clear(first) })
}

// flatList is the same in a slice for n nodes.
func flatList(heads, n int) *Data {
	all, first := make([]flatNode, 0, n), make([]uint64, heads)
	return onHeap(func(i int) error {
		head := &first[i&(heads-1)]
		all = append(all, flatNode{key: uint64(i) + 1, next: *head})
		*head = uint64(len(all))
		return nil
	}, func() (sum uint64) {
		for _, at := range first {
			for ; at != 0; at = all[at-1].next {
				sum += all[at-1].key
			}
		}
		return sum
	}, func() { all = nil })
}

// offList is the same in a.
func offList(a *Allocator, heads int) *Data {
	first := make([]freehold.Ptr[offNode], heads)
	return in(a, func(i int) error {
		p, err := freehold.New[offNode](a)
		if err != nil {
			return err
		}
		head := &first[i&(heads-1)]
		p.key, p.next = uint64(i)+1, *head
		*head = freehold.PtrTo(p)
		return nil
	}, func() (sum uint64) {
		for _, head := range first {
			for p := head.Get(); p != nil; p = p.next.Get() {
				sum += p.key
			}
		}
		return sum
	}, func() {
		for _, head := range first {
			for p := head.Get(); p != nil; {
				next := p.next.Get()
				freehold.Free(a, p)
				p = next
			}
		}
	})
}

// A keyText is the key of an entry: 16 hexadecimal digits.
type keyText [16]byte

// keyOf returns the key of entry i, which no other entry has.
func keyOf(i int) (key keyText) {
	x := (uint64(i) + 1) * 0x9E3779B97F4A7C15 // splitmix64
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], x^x>>31)
	hex.Encode(key[:], b[:])
	return key
}
