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

// newTable returns a table of a class without entries. If huge is set, the table is in a huge page
// if there is room in one. That is for tables of the greatest class, which stay until Close.
func (c *core) newTable(of uintptr, huge bool) (table, error) {
	size := c.tableBytes(of)
	var p unsafe.Pointer
	if huge {
		p = c.hugeTable(size)
	}
	if p == nil {
		var err error
		if p, err = c.alloc(size, tableAlign); err != nil {
			return table{}, err
		}
	}
	clear(unsafe.Slice((*byte)(p), uintptr(classes[of].groups)*headBytes))
	return table{unsafe.Add(p, of)}, nil
}

// hugeTable returns memory for a table in a huge page, or nil.
func (c *core) hugeTable(size uintptr) unsafe.Pointer {
	return c.huge.take(c.base.Parent, size, uintptr(c.slots)*c.groupBytes/groupSlots)
}

func (c *core) freeTable(t table) {
	if size := c.tableBytes(t.class()); !c.huge.giveBack(uintptr(t.base()), size) {
		c.free(t.base(), size)
	}
}
