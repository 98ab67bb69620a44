package arena_test

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/epoch"
)

// A sharedModel knows the blocks of an arena that must be intact: the blocks of this generation,
// and blocks that a guard protects.
type sharedModel struct {
	t          *testing.T
	s          *arena.Shared
	generation int
	blocks     []modelBlock
	guards     []modelGuard
	mark       byte
	live       int
	liveBytes  int
}

type modelBlock struct {
	b          []byte
	mark       byte
	generation int
	freed      bool
}

type modelGuard struct {
	g       epoch.Guard
	entered int // generation
}

func (m *sharedModel) add(b []byte) {
	m.mark++
	for i := range b {
		b[i] = m.mark
	}
	m.blocks = append(m.blocks, modelBlock{b: b, mark: m.mark, generation: m.generation})
	if len(b) > 0 {
		m.live++
		m.liveBytes += len(b)
	}
}

// verify checks every block that must be intact, and drops the others.
func (m *sharedModel) verify() {
	oldest := m.generation
	for _, g := range m.guards {
		oldest = min(oldest, g.entered)
	}
	kept := m.blocks[:0]
	for _, k := range m.blocks {
		if k.generation < oldest {
			continue
		}
		for i, c := range k.b {
			if c != k.mark {
				m.t.Fatalf("byte %d of a block of %d bytes of generation %d has changed; guards reach back to %d, now it is %d",
					i, len(k.b), k.generation, oldest, m.generation)
			}
		}
		if len(k.b) > 0 && !m.s.Owns(k.b) {
			m.t.Fatal("the arena does not own its block")
		}
		kept = append(kept, k)
	}
	m.blocks = kept
}

// FuzzShared reads its input as a program: each three bytes are an operation
// and its arguments. After every step each block that is live or protected by a guard
// must still hold its pattern.
func FuzzShared(f *testing.F) {
	f.Add([]byte{0, 8, 0, 0, 200, 3, 5, 0, 0, 4, 0, 0, 0, 8, 0, 6, 0, 0, 0, 8, 0})
	f.Add([]byte{1, 255, 1, 2, 0, 9, 3, 0, 0, 7, 0, 0, 8, 0, 0, 4, 0, 0, 1, 255, 1})
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		prog := make([]byte, 600)
		for i := range prog {
			prog[i] = byte(r.Uint32())
		}
		f.Add(prog)
	}
	f.Fuzz(func(t *testing.T, prog []byte) {
		const maxBytes = 40_000
		h := newHeap(t)
		m := &sharedModel{t: t, s: newShared(t, h, &arena.SharedOptions{ChunkBytes: 1024, MaxBytes: maxBytes})}
		for ; len(prog) >= 3; prog = prog[3:] {
			op, x, y := prog[0], int(prog[1]), int(prog[2])
			switch op % 10 {
			case 0, 1, 2:
				alloc, size, align := m.s.Alloc, x*(1+y%8), 1<<(y%13)
				if op%10 == 1 {
					alloc = m.s.Zeroed
				}
				b, err := alloc(size, align)
				if err != nil {
					if !errors.Is(err, freehold.ErrOutOfMemory) || b != nil {
						t.Fatalf("Alloc: %v", err)
					}
					break
				}
				if len(b) != size || cap(b) != size || b == nil || size > 0 && addr(b)%uintptr(align) != 0 {
					t.Fatalf("a block of %d bytes at multiples of %d: %d bytes, capacity %d, at %#x", size, align, len(b), cap(b), addr(b))
				}
				for _, c := range b {
					if op%10 == 1 && c != 0 {
						t.Fatal("Zeroed is not zero")
					}
				}
				m.add(b)
			case 3: // free
				if len(m.blocks) > 0 {
					k := &m.blocks[x%len(m.blocks)]
					if k.generation == m.generation && !k.freed && len(k.b) > 0 {
						m.s.Free(k.b)
						k.freed = true
						m.live--
						m.liveBytes -= len(k.b)
					}
				}
			case 4:
				m.s.Reset()
				m.generation++
				m.live, m.liveBytes = 0, 0
			case 5:
				m.guards = append(m.guards, modelGuard{m.s.Enter(), m.generation})
			case 6:
				if len(m.guards) > 0 {
					i := x % len(m.guards)
					m.guards[i].g.Leave()
					m.guards = append(m.guards[:i], m.guards[i+1:]...)
				}
			case 7: // resize
				if len(m.blocks) > 0 {
					k := &m.blocks[x%len(m.blocks)]
					if k.generation == m.generation && !k.freed && len(k.b) > 0 {
						size, before := 1+y*4, len(k.b)
						r, ok := m.s.Resize(k.b, size)
						if size <= before && !ok || ok && (len(r) != size || cap(r) != size || addr(r) != addr(k.b)) {
							t.Fatalf("Resize from %d to %d bytes: %v, %d of %d", before, size, ok, len(r), cap(r))
						}
						if ok {
							m.liveBytes += size - before
							k.b = r
							for i := range r {
								r[i] = k.mark
							}
						}
					}
				}
			case 8:
				m.s.TrimTo(x * 64)
				if st := m.s.Stats(); st.Reserved > x*64 && st.Spare > 0 {
					t.Fatalf("TrimTo(%d) leaves %+v", x*64, st)
				}
			case 9:
				runtime.Gosched()
			}
			m.verify()
			if x%8 == 0 {
				st := m.s.Stats()
				if st.Reserved > maxBytes || st.Live != m.live || st.LiveBytes != m.liveBytes ||
					len(m.guards) == 0 && st.Retired != 0 {
					t.Fatalf("%+v; the model has %d blocks of %d bytes and %d guards", st, m.live, m.liveBytes, len(m.guards))
				}
			}
		}
		for _, g := range m.guards {
			g.g.Leave()
		}
		m.s.Reset()
		m.s.Trim()
		if st := m.s.Stats(); st != (arena.SharedStats{MaxBytes: maxBytes}) {
			t.Fatalf("at the end: %+v", st)
		}
	})
}
