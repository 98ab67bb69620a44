// Buffer: bytes that grow.
//
//	mem   | data               | free          |
//	      0                    n               len(mem)
//
// mem is a block of the parent, or the mapping of a file: see file.go.

package buffer

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"syscall"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/owners"
)

// Options sets up a [Buffer] of [New]; nil means all defaults.
type Options struct {
	// MaxBytes is the most bytes that the buffer may hold. A call that would exceed it
	// fails with [freehold.ErrOutOfMemory]. 0 means no limit; negative is a panic.
	MaxBytes int

	// SpillAfter is how many bytes the buffer may take from its allocator. When it must
	// hold more, it spills: it moves its data to a temporary file that is mapped into
	// memory, and frees its block. The system then writes the data to disk and drops it
	// from memory as it needs. The buffer stays in the file, even if it shrinks. 0 means
	// never; negative is a panic. With 1, the buffer spills at its second byte. If the
	// allocator copies to grow, both blocks exist for a moment.
	SpillAfter int

	// Dir is the directory of the temporary file, and of the second one that a sort of a
	// spilled buffer's records needs. "" means [os.TempDir], which many systems keep in
	// memory.
	Dir string
}

const (
	blockAlign = 64      // of the data
	minBytes   = 64      // the least capacity
	maxStep    = 1 << 30 // the most by which capacity grows ahead of need
)

// Buffer is a growing sequence of bytes. [New] makes one in memory, [Over] one over a slice and
// [Open] one in a file; the zero Buffer panics. Methods that only read may be called
// concurrently; no method may be called while another one writes.
//
// It implements [io.Writer], [io.StringWriter], [io.ByteWriter], [io.ReaderFrom], [io.WriterTo]
// and [io.ReaderAt]. Reading does not consume data: a [Reader] keeps its own place.
type Buffer struct {
	mem      []byte // all the capacity
	n        int    // bytes of data
	parent   freehold.Allocator
	file     *file // that mem maps, or nil
	opts     Options
	borrowed bool // mem is the caller's: see Over
	closed   bool

	writing atomic.Int32 // calls of writeTo under way, which use mem
}

// New returns an empty buffer. It takes memory from parent at the first write; Close frees it.
func New(parent freehold.Allocator, o *Options) *Buffer {
	const call = "buffer.New"
	arg.NotNil(call, "parent", parent)
	b := &Buffer{parent: parent}
	if o != nil {
		b.opts = *o
	}
	arg.AtLeast(call, "MaxBytes", b.opts.MaxBytes, 0)
	arg.AtLeast(call, "SpillAfter", b.opts.SpillAfter, 0)
	owners.Watch(b, "buffer.Buffer", "")
	return b
}

// Over returns a buffer whose data is the caller's slice; writes change the slice. When the
// buffer grows, it copies the data to memory of parent, which Close frees, and no longer uses
// the slice. With Over, [Records] reads and sorts frames in a slice. RecordsOptions.Align then
// holds for addresses only if data begins at a multiple of it.
func Over(parent freehold.Allocator, data []byte) *Buffer {
	arg.NotNil("buffer.Over", "parent", parent)
	b := New(parent, nil)
	b.mem, b.n, b.borrowed = data, len(data), true
	return b
}

// Len returns the number of bytes in the buffer.
func (b *Buffer) Len() int { return b.n }

// Cap returns the number of bytes that the buffer can hold without growing.
func (b *Buffer) Cap() int { return len(b.mem) }

// Bytes returns the data, to read and to write in place. It is valid until the next call that
// may change the buffer's capacity. cap(Bytes()) is its length.
func (b *Buffer) Bytes() []byte { return b.mem[:b.n:b.n] }

// InFile reports whether the data is in a file of [Open] or in a temporary one.
func (b *Buffer) InFile() bool { return b.file != nil }

// String describes the buffer in one line. It does not return the data as bytes.Buffer's String
// does; use string(b.Bytes()) for that.
func (b *Buffer) String() string {
	switch {
	case b == nil:
		return "<nil>"
	case b.closed:
		return "buffer.Buffer: closed"
	case b.InFile():
		return fmt.Sprintf("buffer.Buffer: %d of %d bytes in a file", b.Len(), b.Cap())
	}
	return fmt.Sprintf("buffer.Buffer: %d of %d bytes in memory", b.Len(), b.Cap())
}

// Extend appends n bytes with undefined contents and returns them, to fill in place. The slice
// is valid until the next call that may change the buffer's capacity. Extend costs an addition
// while the capacity lasts.
//
// The error matches [freehold.ErrOutOfMemory] if memory or MaxBytes does not allow it. It is
// the system's if the file cannot grow. The buffer is then unchanged.
func (b *Buffer) Extend(n int) ([]byte, error) { return b.extend("buffer.Buffer.Extend", n) }

// extend is Extend in the name of call.
func (b *Buffer) extend(call string, n int) ([]byte, error) {
	at := b.n
	if uint(n-1) >= uint(len(b.mem)-at) { // n is 0, too much or negative
		if err := b.grow(call, n); err != nil {
			return nil, err
		}
	}
	b.n = at + n
	return b.mem[at:b.n:b.n], nil
}

// Grow makes room to append n more bytes. It fails as Extend does.
func (b *Buffer) Grow(n int) error {
	return b.grow("buffer.Buffer.Grow", n)
}

// Truncate drops all but the first n bytes. It keeps the capacity. In a file of
// [Open] it commits the new length if that is less than the committed one.
func (b *Buffer) Truncate(n int) { b.truncate("buffer.Buffer.Truncate", n) }

// Clear drops all bytes, as Truncate does.
func (b *Buffer) Clear() { b.truncate("buffer.Buffer.Clear", 0) }

func (b *Buffer) truncate(call string, n int) {
	b.mustBeOpen(call)
	if b.readOnly() {
		arg.Panicf(call, "the buffer is read-only")
	}
	arg.Range(call, "length", n, 0, b.n)
	b.n = n
	if b.file != nil && n < b.file.committed {
		// If the file is gone then the next call with an error says so.
		_ = b.guarded(func() error { b.file.commit(n); return nil })
	}
}

// Trim frees the capacity beyond the data, in whole blocks or pages, where the system allows it.
// In a file of [Open] that a Truncate made shorter since the last Sync, it first writes all to
// disk.
func (b *Buffer) Trim() {
	b.mustBeOpen("buffer.Buffer.Trim")
	b.mustNotBeRead("buffer.Buffer.Trim")
	switch {
	case b.file != nil:
		b.file.trim(b)
	case b.n == len(b.mem) || b.borrowed:
	case b.n == 0:
		b.parent.Free(b.mem)
		b.mem = nil
	default:
		if mem, err := freehold.Realloc(b.parent, b.mem, b.n, blockAlign); err == nil {
			b.mem = mem
		}
	}
}

// Close frees the memory, and removes a temporary file. It commits a file of [Open], cuts it to
// the data and writes it to disk; the error says which step failed. Another Close is a
// no-op. After Close, Len, Cap, Bytes and InFile are as for an empty buffer in memory, and
// other methods panic.
func (b *Buffer) Close() error {
	if b.closed || b.parent == nil && b.file == nil { // closed or zero
		return nil
	}
	const call = "buffer.Buffer.Close"
	b.mustNotBeRead(call)
	if b.file == nil && !b.borrowed && cap(b.mem) > 0 {
		owners.MustHaveParent(call, b.parent)
	}
	err := b.Sync()
	switch {
	case b.borrowed:
	case b.file == nil:
		b.parent.Free(b.mem)
	case err != nil:
		_ = b.file.close()
	default:
		err = b.file.cutAndClose(b.n)
	}
	b.mem, b.n, b.file, b.closed = nil, 0, nil, true
	owners.Closed(b)
	return err
}

// mustBeOpen panics in the name of call for a zero Buffer and after Close.
func (b *Buffer) mustBeOpen(call string) {
	if b.closed {
		arg.Panicf(call, "the buffer is closed")
	}
	if b.parent == nil && b.file == nil {
		arg.Panicf(call, "zero value: buffer.New makes a Buffer")
	}
}

// mustNotBeRead panics in the name of call, which is going to move the data, if a WriteTo is
// under way.
func (b *Buffer) mustNotBeRead(call string) {
	if b.writing.Load() != 0 {
		arg.Panicf(call, "a WriteTo of the buffer is under way")
	}
}

func (b *Buffer) readOnly() bool { return b.file != nil && b.file.readOnly }

// grow makes room for n more bytes, and checks that b is open.
//
//go:noinline
func (b *Buffer) grow(call string, n int) error {
	b.mustBeOpen(call)
	arg.AtLeast(call, "size", n, 0)
	if n <= len(b.mem)-b.n {
		return nil
	}
	if b.readOnly() {
		return errReadOnly
	}
	limit := math.MaxInt - headerBytes
	if b.opts.MaxBytes != 0 {
		limit = b.opts.MaxBytes
	}
	if n > limit-b.n {
		return fmt.Errorf("%w: the buffer has %d bytes and cannot take %d more: its limit is %d", freehold.ErrOutOfMemory, b.n, n, limit)
	}
	b.mustNotBeRead(call)
	need := b.n + n
	if b.file == nil && b.opts.SpillAfter != 0 && need <= b.opts.SpillAfter {
		limit = min(limit, b.opts.SpillAfter)
	}
	// If doubling is refused, try an eighth more, then exactly the needed size.
	ahead := min(len(b.mem), maxStep)
	var err error
	for _, spare := range [...]int{ahead, ahead / 8, 0} {
		size := max(len(b.mem)+min(spare, limit-len(b.mem)), need, min(minBytes, limit))
		if err = b.setCap(size); err == nil || !isFull(err) {
			return err
		}
	}
	return err
}

// isFull reports whether a smaller request might succeed after err.
func isFull(err error) bool {
	return errors.Is(err, freehold.ErrOutOfMemory) || errors.Is(err, syscall.ENOSPC) ||
		errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// setCap grows the capacity to size bytes.
func (b *Buffer) setCap(size int) error {
	switch {
	case b.file != nil:
		return b.file.setCap(b, size)
	case b.opts.SpillAfter != 0 && size > b.opts.SpillAfter:
		return b.spill(size)
	}
	old := b.mem
	if b.borrowed {
		old = nil
	}
	mem, err := freehold.Realloc(b.parent, old, size, blockAlign)
	if err != nil {
		return err
	}
	if b.borrowed {
		copy(mem, b.mem)
		b.borrowed = false
	}
	b.mem = mem
	return nil
}

// spill moves the data to a temporary file with room for size bytes.
func (b *Buffer) spill(size int) error {
	f, err := newTemp(b.opts.Dir, b.mem[:b.n])
	if err != nil {
		return err
	}
	old := b.mem
	b.file = f
	if err := f.setCap(b, size); err != nil {
		b.file = nil
		_ = f.close()
		return err
	}
	b.parent.Free(old)
	return nil
}
