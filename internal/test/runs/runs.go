// Package runs runs random programs on heaps of large blocks, each a run of pages.
package runs

import (
	"math/rand/v2"
	"testing"

	"github.com/freehold-go/freehold/internal/poison"
)

// Heap has the calls of a program.
type Heap interface {
	Alloc(size, align int, zero bool) ([]byte, error)
	Free(b []byte)
	Resize(b []byte, size int) ([]byte, bool)
	Trim()
	Tick()
}

// Program is a number of random calls. Blocks keep their first and last bytes from call to call.
type Program struct {
	Calls    int
	MostLive int            // blocks
	Aligns   int            // powers of two, from 1
	Size     func() int     // of a block
	Advise   func(b []byte) // is called with a block now and then
	Check    func()         // is called after each call
}

// Run runs p on h. It frees all blocks in the end, and trims h.
func (p Program) Run(t *testing.T, r *rand.Rand, h Heap) {
	var live [][]byte
	mark := func(b []byte) []byte {
		b[0], b[len(b)-1] = byte(len(b)), byte(len(b))
		return b
	}
	free := func(i int) {
		b := live[i]
		if b[0] != byte(len(b)) || b[len(b)-1] != byte(len(b)) {
			t.Fatalf("a block of %d bytes has changed", len(b))
		}
		h.Free(b)
		live[i] = live[len(live)-1]
		live = live[:len(live)-1]
	}
	for range p.Calls {
		i, size := 0, p.Size()
		if len(live) > 0 {
			i = r.IntN(len(live))
		}
		switch op := r.IntN(200); {
		case op == 0:
			h.Trim()
		case op < 3:
			h.Tick()
		case op < 5 && len(live) > 0:
			p.Advise(live[i])
		case op < 25 && len(live) > 0:
			if b, ok := h.Resize(live[i], size); ok {
				live[i] = mark(b)
			}
		case len(live) == p.MostLive || op < 105 && len(live) > 0:
			free(i)
		default:
			zero := op%4 == 0
			b, err := h.Alloc(size, 1<<r.IntN(p.Aligns), zero)
			if err != nil || zero && poison.Other(b, 0) >= 0 {
				t.Fatalf("%d bytes: %v", size, err)
			}
			live = append(live, mark(b))
		}
		p.Check()
	}
	for len(live) > 0 {
		free(0)
	}
	h.Trim()
	p.Check()
}
