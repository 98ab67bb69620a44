// Memory: the blocks from the parent.

package hashmap

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/container"
)

// alloc returns a block of size bytes from the parent.
func (c *core) alloc(size uintptr, align int) (unsafe.Pointer, error) {
	if size > math.MaxInt {
		return nil, fmt.Errorf("%w: %d bytes are more than an int can hold", freehold.ErrOutOfMemory, size)
	}
	b, err := c.base.Parent.Alloc(int(size), align)
	if err != nil {
		return nil, container.Refused(err)
	}
	c.bytes += len(b)
	return unsafe.Pointer(unsafe.SliceData(b)), nil
}

// free returns a block to the parent.
//
// Precondition: alloc returned it for that size.
func (c *core) free(p unsafe.Pointer, size uintptr) {
	c.bytes -= int(size)
	c.base.Parent.Free(unsafe.Slice((*byte)(p), int(size)))
}

// newTable returns a table without entries.
func (c *core) newTable(log uintptr) (table, error) {
	var p unsafe.Pointer
	if c.stride<<log == c.huge.size {
		p = c.hugeTable()
	}
	if p == nil {
		var err error
		if p, err = c.alloc(c.stride<<log, int(tableAlign(c.stride))); err != nil {
			return table{}, err
		}
	}
	t := table{unsafe.Add(p, log)}
	for i := range t.groups() {
		*tagsAt(t.group(i, c.stride)) = 0
	}
	return t, nil
}

// hugeTable returns memory for a table of maxGroups in a huge page, or nil.
func (c *core) hugeTable() unsafe.Pointer {
	return c.huge.take(c.base.Parent, uintptr(c.tables)*c.huge.size)
}

func (c *core) freeTable(t table) {
	if !c.huge.has(uintptr(t.base())) {
		c.free(t.base(), c.stride<<t.log())
	}
}
