package arena

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/panics"
)

// A model is the expected state of an arena: its live blocks, oldest first, each
// with its fill byte, and the valid marks.
type model struct {
	t      testing.TB
	a      *Arena
	blocks []filledBlock
	marks  []modelMark
	old    []Mark // stale
	fill   byte
}

type filledBlock struct {
	b    []byte
	fill byte
}

type modelMark struct {
	mark Mark
	live []filledBlock
}

// run reads prog as a program: each three bytes are an operation and its
// arguments. After each step all live blocks must hold their pattern.
func (m *model) run(prog []byte) {
	for ; len(prog) >= 3; prog = prog[3:] {
		m.step(prog[0], int(prog[1]), int(prog[2]))
		m.a.check(m.t)
		for i, f := range m.blocks {
			if !bytes.Equal(f.b, bytes.Repeat([]byte{f.fill}, len(f.b))) {
				m.t.Fatalf("block %d of %d bytes has changed", i, len(f.b))
			}
		}
	}
}

func (m *model) step(op byte, x, y int) {
	a := m.a
	size := x + 1
	if x >= 200 {
		size = (x - 199) * 50 // larger than most chunks
	}
	switch op % 16 {
	case 0, 1, 2, 3, 4:
		m.alloc(size, 1<<(y%10), false)
	case 5, 6, 7, 8:
		m.alloc(size, 1<<(y%10), true)
	case 9:
		if len(m.blocks) > 0 {
			i := y % len(m.blocks)
			if op >= 64 {
				i = len(m.blocks) - 1
			}
			a.Free(m.blocks[i].b)
			m.forget(i)
		}
	case 10:
		if len(m.blocks) > 0 {
			m.resize(y%len(m.blocks), size)
		}
	case 11:
		m.marks = append(m.marks, modelMark{a.Mark(), append([]filledBlock(nil), m.blocks...)})
	case 12:
		if len(m.marks) > 0 {
			i := y % len(m.marks)
			a.Rewind(m.marks[i].mark)
			m.blocks = append([]filledBlock(nil), m.marks[i].live...)
			m.endMarks(i)
		}
	case 13:
		if y%8 == 0 {
			a.Reset()
			for _, s := range m.marks {
				m.old = append(m.old, s.mark)
			}
			m.marks, m.blocks = nil, nil
		}
		a.TrimTo(x * 64)
	case 14:
		if len(m.old) > 0 {
			m.mustPanic(func() { a.Rewind(m.old[y%len(m.old)]) })
		}
	case 15:
		if err := a.Reserve(size); err != nil {
			m.refused(err)
		} else if a.end-a.top < uintptr(size) {
			m.t.Fatalf("after Reserve(%d) there is room for %d bytes", size, a.end-a.top)
		}
	}
	if len(m.old) > 100 {
		m.old = m.old[50:]
	}
	// Frees of blocks older than a mark make it too high, never too low.
	if a.Live() < len(m.blocks) {
		m.t.Fatalf("%d blocks live of %d", a.Live(), len(m.blocks))
	}
}

func (m *model) alloc(size, align int, zeroed bool) {
	alloc := m.a.Alloc
	if zeroed {
		alloc = m.a.Zeroed
	}
	b, err := alloc(size, align)
	switch {
	case err != nil:
		m.refused(err)
		return
	case len(b) != size || cap(b) != size || addressOf(b)%uintptr(align) != 0 || !m.a.Owns(b):
		m.t.Fatalf("a block of %d bytes at %#x for Alloc(%d, %d)", len(b), addressOf(b), size, align)
	case zeroed && !bytes.Equal(b, make([]byte, size)):
		m.t.Fatalf("Zeroed(%d, %d) is not zero", size, align)
	}
	m.hold(b)
}

// hold fills b with a distinct byte and appends it as the newest block.
func (m *model) hold(b []byte) {
	m.fill = m.fill%200 + 1
	setAll(b, m.fill)
	m.blocks = append(m.blocks, filledBlock{b: b, fill: m.fill})
}

func (m *model) resize(i, size int) {
	f := m.blocks[i]
	r, ok := m.a.Resize(f.b, size)
	if !ok {
		if size <= len(f.b) {
			m.t.Fatalf("Resize of %d bytes to %d: false", len(f.b), size)
		}
		return
	}
	if len(r) != size || cap(r) != size || addressOf(r) != addressOf(f.b) {
		m.t.Fatalf("Resize to %d: %d bytes", size, len(r))
	}
	if n := min(size, len(f.b)); !bytes.Equal(r[:n], f.b[:n]) {
		m.t.Fatal("Resize changes the contents")
	}
	m.forget(i)
	m.hold(r)
}

// forget removes live block i from the model and from all marks.
func (m *model) forget(i int) {
	ended := m.blocks[i].b
	m.blocks = append(m.blocks[:i:i], m.blocks[i+1:]...)
	for k, s := range m.marks {
		var live []filledBlock
		for _, f := range s.live {
			if addressOf(f.b) != addressOf(ended) {
				live = append(live, f)
			}
		}
		m.marks[k].live = live
	}
}

// endMarks ends the marks beyond mark i, which was rewound to. The others that are
// newer lose the blocks since mark i.
func (m *model) endMarks(i int) {
	to := m.marks[i].mark
	newest := to.number == m.a.lastMark
	kept := m.marks[:0]
	for j, s := range m.marks {
		switch beyond := (place{s.mark.used, s.mark.top}).beyond(place{to.used, to.top}); {
		case beyond && !newest:
			m.old = append(m.old, s.mark)
			continue
		case j > i:
			var live []filledBlock
			for _, f := range s.live {
				if slices.ContainsFunc(m.blocks, func(g filledBlock) bool { return addressOf(f.b) == addressOf(g.b) }) {
					live = append(live, f)
				}
			}
			s.live = live
		}
		kept = append(kept, s)
	}
	m.marks = kept
}

func (m *model) refused(err error) {
	if !errors.Is(err, freehold.ErrOutOfMemory) {
		m.t.Fatal(err)
	}
}

func (m *model) mustPanic(call func()) {
	if panics.Of(call) == "" {
		m.t.Fatal("no panic")
	}
}

// setups are the arenas for programs; the first byte of the input selects one.
var setups = []Options{
	{},
	{ChunkBytes: 64, MaxChunkBytes: 256},
	{ChunkBytes: 1, MaxChunkBytes: 512, MaxBytes: 5000},
	{ChunkBytes: 1000, MaxChunkBytes: 1000, MaxBytes: 2500},
}

const maxSteps = 300 // the cost of a step grows with the blocks

func runProgram(t testing.TB, prog []byte) {
	if len(prog) == 0 {
		return
	}
	var parent freehold.Allocator = alloctest.New(t)
	if prog[0]&16 != 0 {
		parent = freehold.NewLimit(parent, 3000)
	}
	a := New(parent, &setups[prog[0]%4])
	m := &model{t: t, a: a}
	m.run(prog[1:min(len(prog), 1+3*maxSteps)])
	a.Close()
}

// FuzzArena runs its input as a program against the model.
func FuzzArena(f *testing.F) {
	f.Add([]byte{1, 0, 8, 0, 5, 8, 3, 11, 0, 0, 0, 255, 0, 12, 0, 0, 5, 20, 0, 13, 0, 0, 0, 1, 1})
	f.Add([]byte{2, 5, 100, 0, 9, 0, 0, 5, 200, 9, 10, 50, 0, 15, 90, 0})
	r := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		f.Add(randomProgram(r, 200))
	}
	f.Fuzz(func(t *testing.T, prog []byte) { runProgram(t, prog) })
}

func TestRandomPrograms(t *testing.T) {
	n := 400
	if testing.Short() {
		n = 60
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range n {
		runProgram(t, randomProgram(r, maxSteps))
		if t.Failed() {
			return
		}
	}
}

func randomProgram(r *rand.Rand, steps int) []byte {
	prog := make([]byte, 1+3*steps)
	for i := range prog {
		prog[i] = byte(r.Uint32())
	}
	return prog
}
