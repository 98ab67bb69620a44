// Programs: bytes as a sequence of calls, checked against a model.
//
// The fuzzer, its corpus and the random tests share this interpreter.

package alloctest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/poison"
)

// RunProgram interprets prog as a program of calls on a and fails t at the first wrong
// result. Each instruction is four bytes; an incomplete one at the end is ignored:
//
//	byte 0, low half   the call: Alloc, Zeroed, Resize, Realloc or Free
//	byte 0, high half  the alignment, 1 to 4096
//	byte 1             which of the live blocks
//	bytes 2 and 3      the size: up to 128 B, 40 KiB or 3 MiB
//
// Each live block holds its own pattern. RunProgram checks the edges of all blocks after
// each call, and all of a block before it is resized or freed. At most 256 blocks
// and 64 MiB are live. At the end all are freed. Errors that match
// [freehold.ErrOutOfMemory] are correct results.
//
// Several goroutines may run programs on one allocator if that is safe for
// concurrent use: RunProgram calls only t.Errorf and t.Helper.
func RunProgram(t testing.TB, a freehold.Allocator, prog []byte) {
	t.Helper()
	m := model{a: a}
	for ; len(prog) >= instructionBytes && m.fault == ""; prog = prog[instructionBytes:] {
		m.step(prog[0], int(prog[1]), int(prog[2])|int(prog[3])<<8)
		m.checkEdges()
	}
	for len(m.live) > 0 && m.fault == "" {
		m.free(0)
	}
	if m.fault != "" {
		t.Errorf("after %d calls: %s", m.calls, m.fault)
	}
}

const (
	instructionBytes = 4
	maxLiveBlocks    = 256
	maxLiveBytes     = 64 << 20
)

// A model is the expected state of an allocator after the calls so far.
type model struct {
	a     freehold.Allocator
	live  []held
	bytes int // in live
	calls int
	fault string // the first wrong result
}

// A held block, with its alignment and pattern.
type held struct {
	b     []byte
	align int
	p     pattern
}

// sizeFrom maps 16 bits to sizes that allocators treat differently: half are tiny,
// three eighths in the size classes, and one eighth large.
func sizeFrom(bits int) int {
	v := bits >> 3 // up to 8191
	switch bits & 7 {
	case 0, 1, 2, 3:
		return v % 129
	case 4, 5, 6:
		return v * 5
	default:
		return v*384 + v%385
	}
}

// step executes one instruction.
func (m *model) step(op byte, which, sizeBits int) {
	size, align := sizeFrom(sizeBits), 1<<(op>>4%13)
	if len(m.live) == 0 {
		m.alloc(size, align, op&1 == 1)
		return
	}
	i := which % len(m.live)
	switch {
	case len(m.live) == maxLiveBlocks || m.bytes+size > maxLiveBytes:
		m.free(i)
	case op&15 < 4:
		m.alloc(size, align, false)
	case op&15 < 7:
		m.alloc(size, align, true)
	case op&15 < 10:
		m.resize(i, size)
	case op&15 < 13:
		m.realloc(i, size)
	default:
		m.free(i)
	}
}

func (m *model) alloc(size, align int, zeroed bool) {
	m.calls++
	call, name := m.a.Alloc, "Alloc"
	if zeroed {
		call, name = m.a.Zeroed, "Zeroed"
	}
	b, err := call(size, align)
	if err != nil {
		m.refused(b, err, "%s(%d, %d)", name, size, align)
		return
	}
	if zeroed {
		if i := poison.Other(b, 0); i >= 0 {
			m.fail("%s(%d, %d): byte %d is %#x", name, size, align, i, b[i])
			return
		}
	}
	m.hold(held{b: b, align: align}, size, "%s(%d, %d)", name, size, align)
}

func (m *model) free(i int) {
	m.calls++
	h := m.live[i]
	m.intact(h, len(h.b), "before Free")
	m.forget(i)
	m.a.Free(h.b)
}

func (m *model) resize(i, size int) {
	m.calls++
	h := m.live[i]
	m.intact(h, len(h.b), "before Resize")
	r, ok := m.a.Resize(h.b, size)
	if !ok {
		m.intact(h, len(h.b), "after a Resize that reported false")
		return
	}
	m.replace(i, r, size, "Resize")
}

func (m *model) realloc(i, size int) {
	m.calls++
	h := m.live[i]
	m.intact(h, len(h.b), "before Realloc")
	r, err := freehold.Realloc(m.a, h.b, size, h.align)
	if err != nil {
		m.refused(r, err, "Realloc of %d bytes to %d", len(h.b), size)
		m.intact(h, len(h.b), "after a Realloc that failed")
		return
	}
	m.replace(i, r, size, "Realloc")
}

// replace replaces live block i with r, its new block after call.
func (m *model) replace(i int, r []byte, size int, call string) {
	h := m.live[i]
	oldSize := len(h.b)
	m.forget(i)
	h.b = r
	m.intact(h, min(oldSize, len(r)), "after "+call)
	m.hold(h, size, "%s of %d bytes to %d", call, oldSize, size)
}

// hold checks a block that a call returned, fills it with a new pattern and adds it
// to the live ones. It frees an empty block at once, which must be a no-op.
func (m *model) hold(h held, size int, call string, args ...any) {
	if fault := blockFault(h.b, size, h.align); fault != "" {
		m.fail(call+": "+fault, args...)
		return
	}
	if size == 0 {
		m.a.Free(h.b)
		return
	}
	for _, o := range m.live {
		if addrOf(h.b) < addrOf(o.b)+uintptr(len(o.b)) && addrOf(o.b) < addrOf(h.b)+uintptr(size) {
			m.fail(call+": the block at %#x overlaps one of %d bytes at %#x", append(args, addrOf(h.b), len(o.b), addrOf(o.b))...)
			return
		}
	}
	h.p = newPattern()
	h.p.fill(h.b)
	m.live = append(m.live, h)
	m.bytes += size
}

// forget removes live block i from the model.
func (m *model) forget(i int) {
	last := len(m.live) - 1
	m.bytes -= len(m.live[i].b)
	m.live[i] = m.live[last]
	m.live = m.live[:last]
}

// refused checks the result of a failed call.
func (m *model) refused(b []byte, err error, call string, args ...any) {
	if !errors.Is(err, freehold.ErrOutOfMemory) {
		m.fail(call+": the error %q does not match ErrOutOfMemory", append(args, err)...)
	} else if b != nil {
		m.fail(call+": a block of %d bytes beside the error %q", append(args, len(b), err)...)
	}
}

// intact checks that the first n bytes of h still hold its pattern.
func (m *model) intact(h held, n int, when string) {
	if i := h.p.damage(h.b[:n], 0); i >= 0 {
		m.fail("%s: byte %d of the block of %d bytes at %#x has changed", when, i, len(h.b), addrOf(h.b))
	}
}

// checkEdges checks both ends of each live block. It finds a write past the end of
// a neighbour soon after the call that made it.
func (m *model) checkEdges() {
	for _, h := range m.live {
		if i := h.p.damagedEdge(h.b); i >= 0 {
			m.fail("byte %d of the block of %d bytes at %#x has changed", i, len(h.b), addrOf(h.b))
		}
	}
}

// fail records the first wrong result and ignores later ones.
func (m *model) fail(format string, args ...any) {
	if m.fault == "" {
		m.fault = fmt.Sprintf(format, args...)
	}
}

// blockFault returns the fault of b as a block of the given size and alignment, or
// "".
func blockFault(b []byte, size, align int) string {
	switch {
	case b == nil:
		return "a nil block and no error"
	case len(b) != size || cap(b) != size:
		return fmt.Sprintf("len %d and cap %d", len(b), cap(b))
	case size > 0 && addrOf(b)%uintptr(align) != 0:
		return fmt.Sprintf("the block at %#x is not at a multiple of %d", addrOf(b), align)
	}
	return ""
}
