//go:build freehold_debug

package vector

import (
	"testing"

	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/panics"
)

// The memory of a dropped element is filled, and a write to it is found when it has an
// element again.
func TestWritesAfterTruncateAreFound(t *testing.T) {
	c := NewChunked[[2]uint32](alloctest.New(t), nil)
	defer c.Close()
	for range 100 {
		if _, err := c.Append([2]uint32{1, 2}); err != nil {
			t.Fatal(err)
		}
	}
	kept, gone := c.At(49), c.At(51)
	c.Truncate(50)
	if *kept != [2]uint32{1, 2} || *gone != [2]uint32{0xDBDBDBDB, 0xDBDBDBDB} {
		t.Errorf("%v is an element, and %x none", *kept, *gone)
	}
	gone[1] = 7
	if _, err := c.Append([2]uint32{}); err != nil {
		t.Fatal(err)
	}
	panics.Want(t, "...for element 51 was written after that element was dropped...", func() { c.Append([2]uint32{}) })
}
