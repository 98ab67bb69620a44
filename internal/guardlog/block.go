// Blocks: lookup of the guarded block at or next to an address.

package guardlog

import (
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/stacks"
	"github.com/freehold-go/freehold/internal/vm"
)

// Block is a guarded block.
type Block struct {
	Addr, Size uintptr
	State      State
	Heap       string    // the heap's name, cut to maxName bytes
	Alloc      []uintptr // the stack of its allocation, as from runtime.Callers
	Free       []uintptr // the stack of its Free; empty if it is live
}

// Find is [Log.Find] in the log of this process.
func Find(addr uintptr) (Block, bool) { return own.Find(addr) }

// Block returns the block of a record.
func (id ID) Block() Block {
	if id == 0 {
		return Block{}
	}
	return own.block(own.record(id))
}

// Map maps a log read-only. The file is the one that Open returned in another process of the
// same program.
func Map(f *os.File) (*Log, error) {
	at, err := vm.MapFile(f, logBytes, false)
	if err != nil {
		return nil, err
	}
	l := &Log{}
	l.at.Store(at)
	l.stacks.Use(at + stacksAt)
	return l, nil
}

// Find returns the guarded block that contains addr, or else the nearest one. It looks only at
// runs that contain addr or begin at most a page behind it.
func (l *Log) Find(addr uintptr) (Block, bool) {
	if l.at.Load() == 0 {
		return Block{}, false
	}
	var found *record
	nearest := ^uint64(0)
	for id := ID(1); id <= ID(l.header().records.Load()); id++ {
		r, a := l.record(id), uint64(addr)
		// The page in front of a run is the inaccessible end of another run.
		if r.state == unused || a < r.base-uint64(vm.PageBytes()) || a >= r.base+r.bytes {
			continue
		}
		distance := uint64(0)
		switch {
		case a < r.addr:
			distance = r.addr - a
		case a >= r.addr+r.size:
			distance = a - (r.addr + r.size) + 1
		}
		if r.state == Closed { // another heap may use its addresses by now
			distance += 1 << 32
		}
		if distance < nearest {
			found, nearest = r, distance
		}
	}
	if found == nil {
		return Block{}, false
	}
	return l.block(found), true
}

func (l *Log) block(r *record) Block {
	b := Block{Addr: uintptr(r.addr), Size: uintptr(r.size), State: r.state, Heap: string(r.name[:r.nameLen])}
	b.Alloc, b.Free = l.stack(r.alloc), l.stack(r.free)
	return b
}

// stack returns a stack with the addresses that its code has in this process.
func (l *Log) stack(id stacks.ID) []uintptr {
	pcs, _ := l.stacks.Stack(id)
	shift := anchor() - uintptr(l.header().anchor)
	moved := make([]uintptr, len(pcs))
	for i, pc := range pcs {
		moved[i] = pc + shift
	}
	return moved
}

// anchor returns the address of one function. In every process of the same program, all code
// is at the same distance from it.
func anchor() uintptr { return reflect.ValueOf(Find).Pointer() }

// Describe describes an access to addr in one line.
func (b Block) Describe(addr uintptr) string {
	fault := "use after free"
	switch {
	case b.State == Closed:
		fault = "use after Close of the heap"
	case b.State == Live && addr < b.Addr:
		fault = "underflow"
	case b.State == Live && addr >= b.Addr+b.Size:
		fault = "overflow"
	case b.State == Live:
		fault = "access"
	}
	return fmt.Sprintf("%s at %#x: %s of a block of %s of heap %q", fault, addr, b.place(addr), arg.Bytes(int(b.Size)), b.Heap)
}

// place says where addr is, relative to the block.
func (b Block) place(addr uintptr) string {
	switch {
	case addr < b.Addr:
		return fmt.Sprintf("%s before the beginning", arg.Bytes(int(b.Addr-addr)))
	case addr >= b.Addr+b.Size:
		return fmt.Sprintf("%s past the end", arg.Bytes(int(addr-b.Addr-b.Size)+1))
	}
	return fmt.Sprintf("byte %d", addr-b.Addr)
}

// Stacks returns the stacks of the block's allocation and Free as text, two lines a frame.
func (b Block) Stacks() string {
	return strings.TrimSuffix(stacks.At("allocated", b.Alloc, "\t")+stacks.At("freed", b.Free, "\t"), "\n")
}
