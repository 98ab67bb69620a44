// Toy: an allocator that is correct or has one chosen defect.

package alloctest_test

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/freehold-go/freehold"
)

// toy cuts blocks of powers of two from Go memory, and keeps freed blocks on lists.
type toy struct {
	defect string // "" for none
	free   map[int][][]byte
	live   map[uintptr]toyBlock
}

type toyBlock struct {
	whole []byte // the whole block of the class
	size  int
}

func newToy(defect string) *toy {
	return &toy{defect: defect, free: map[int][][]byte{}, live: map[uintptr]toyBlock{}}
}

func (a *toy) Alloc(size, align int) ([]byte, error) {
	switch {
	case size < 0 && a.defect == "a negative size is empty":
		size = 0
	case size < 0 && a.defect == "a negative size panics without saying what":
		panic("oops")
	case size < 0:
		panic(fmt.Sprintf("freehold: Alloc of %d bytes", size))
	}
	if (align <= 0 || align&(align-1) != 0) && a.defect != "any alignment goes" {
		panic(fmt.Sprintf("freehold: alignment %d is no power of two", align))
	}
	if size == 0 {
		if a.defect == "an empty block is nil" {
			return nil, nil
		}
		return []byte{}, nil
	}
	if a.defect == "a huge size wraps around" {
		size &= 1<<20 - 1
	}
	if size > 64<<20 || align > 64<<20 {
		if a.defect == "another error" {
			return nil, errors.New("out of luck")
		}
		return nil, freehold.ErrOutOfMemory
	}
	class := 16
	for class < size || class < align {
		class *= 2
	}
	if len(a.free[class]) == 0 {
		a.refill(class)
	}
	last := len(a.free[class]) - 1
	whole := a.free[class][last]
	a.free[class] = a.free[class][:last]
	b := whole[:size:size]
	switch {
	case a.defect == "capacity is not clipped":
		b = whole[:size]
	case a.defect == "a small block is not aligned" && size < class && align > 1:
		b = whole[1 : size+1 : size+1]
	}
	a.live[addr(b)] = toyBlock{whole, size}
	return b, nil
}

func (a *toy) refill(class int) {
	n := max(1, 4096/class)
	chunk := make([]byte, (n+1)*class)
	if past := int(addr(chunk) % uintptr(class)); past > 0 {
		chunk = chunk[class-past:]
	}
	for i := range n {
		a.free[class] = append(a.free[class], chunk[i*class:][:class:class])
	}
	if a.defect == "a block is in the list twice" {
		a.free[class] = append(a.free[class], chunk[:class:class])
	}
}

func (a *toy) Zeroed(size, align int) ([]byte, error) {
	b, err := a.Alloc(size, align)
	if a.defect == "Zeroed clears no more than a page" {
		clear(b[:min(len(b), 4096)])
	} else {
		clear(b)
	}
	return b, err
}

func (a *toy) Resize(b []byte, size int) ([]byte, bool) {
	if size < 0 {
		panic(fmt.Sprintf("freehold: Resize to %d bytes", size))
	}
	if size == 0 && a.defect != "an empty block is not resized to 0" {
		a.Free(b)
		return []byte{}, true
	}
	if len(b) == 0 || size == 0 {
		return nil, false
	}
	k := a.live[addr(b)]
	if size > len(k.whole) {
		if a.defect == "a failed Resize writes to the block" {
			b[len(b)-1]++
		}
		return nil, false
	}
	switch {
	case a.defect == "Resize loses the contents" && size > len(b):
		r, _ := a.Alloc(size, 1)
		a.Free(b)
		return r, true
	case a.defect == "Resize moves the contents":
		copy(k.whole[1:], b)
	}
	a.live[addr(b)] = toyBlock{k.whole, size}
	return k.whole[:size:size], true
}

func (a *toy) Free(b []byte) {
	if len(b) == 0 {
		return
	}
	k, ok := a.live[addr(b)]
	if !ok && a.defect == "an interior free is ignored" && addr(b)%8 != 0 {
		return
	}
	if !ok && a.defect == "a double free is taken" {
		for class := 16; ; class *= 2 {
			if class >= len(b) {
				a.free[class] = append(a.free[class], b[:len(b):len(b)], b)
				return
			}
		}
	}
	if !ok || k.size != len(b) && a.defect != "a short free is taken" {
		panic(fmt.Sprintf("freehold: Free of %#x, which is no block", addr(b)))
	}
	if a.defect == "Free writes a link behind the block" && len(k.whole) == 16 {
		for _, o := range a.live {
			if len(o.whole) == 16 && addr(o.whole) == addr(b)+16 {
				o.whole[0]++
			}
		}
	}
	delete(a.live, addr(b))
	a.free[len(k.whole)] = append(a.free[len(k.whole)], k.whole)
}

func (a *toy) Owns(b []byte) bool {
	switch {
	case a.defect == "owns everything":
		return true
	case a.defect == "owns no interior":
		_, ok := a.live[addr(b)]
		return ok && len(b) > 0
	}
	for _, k := range a.live {
		if len(b) > 0 && addr(b)-addr(k.whole) < uintptr(len(k.whole)) {
			return true
		}
	}
	return false
}

func addr(b []byte) uintptr { return reflect.ValueOf(b).Pointer() }
