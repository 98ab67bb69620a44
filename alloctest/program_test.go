package alloctest_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// program returns a random program of n instructions, the same in each run.
func program(n int) []byte {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	prog := make([]byte, 4*n)
	for i := range prog {
		prog[i] = byte(r.Uint32())
	}
	return prog
}

func FuzzRun(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0x30, 0, 32, 0, 0x0F, 0, 0, 0})               // Alloc, Free
	f.Add([]byte{0xC6, 0, 0xFF, 0xFF, 0x0A, 0, 0x44, 0, 0xFF}) // Zeroed, Realloc, a rest
	f.Add(program(50))
	f.Fuzz(func(t *testing.T, prog []byte) {
		alloctest.RunProgram(t, newToy(""), prog)
		alloctest.RunProgram(t, alloctest.New(t), prog)
	})
}

// probe is an allocator that records the requests.
type probe struct {
	freehold.Allocator
	ops                       map[string]int
	tiny, classes, large, big int
	aligns                    map[int]bool
	live, mostLive            int
	bytes, mostBytes          int
}

func (p *probe) note(op string, size, align int) {
	p.ops[op]++
	switch {
	case size <= 128:
		p.tiny++
	case size <= 40<<10:
		p.classes++
	default:
		p.large++
	}
	p.big = max(p.big, size)
	p.aligns[align] = true
}

func (p *probe) took(b []byte, err error) ([]byte, error) {
	if len(b) > 0 {
		p.live++
		p.bytes += len(b)
	}
	p.mostLive = max(p.mostLive, p.live)
	p.mostBytes = max(p.mostBytes, p.bytes)
	return b, err
}

func (p *probe) Alloc(size, align int) ([]byte, error) {
	p.note("Alloc", size, align)
	return p.took(p.Allocator.Alloc(size, align))
}

func (p *probe) Zeroed(size, align int) ([]byte, error) {
	p.note("Zeroed", size, align)
	return p.took(p.Allocator.Zeroed(size, align))
}

func (p *probe) Resize(b []byte, size int) ([]byte, bool) {
	p.ops["Resize"]++
	r, ok := p.Allocator.Resize(b, size)
	if ok {
		p.bytes += len(r) - len(b)
		if len(b) > 0 && len(r) == 0 {
			p.live--
		}
	}
	return r, ok
}

func (p *probe) Free(b []byte) {
	p.ops["Free"]++
	if len(b) > 0 {
		p.live--
		p.bytes -= len(b)
	}
	p.Allocator.Free(b)
}

// TestProgramsCoverTheCalls: a random program reaches all calls, sizes and
// alignments, and stays within its bounds.
func TestProgramsCoverTheCalls(t *testing.T) {
	p := &probe{Allocator: newToy(""), ops: map[string]int{}, aligns: map[int]bool{}}
	alloctest.RunProgram(t, p, program(3000))
	for _, op := range []string{"Alloc", "Zeroed", "Resize", "Free"} {
		if p.ops[op] < 300 {
			t.Errorf("%d calls of %s in 3000 instructions", p.ops[op], op)
		}
	}
	if p.tiny < 300 || p.classes < 300 || p.large < 100 || p.big < 3<<20-1<<14 || p.big > 3<<20 {
		t.Errorf("%d tiny, %d to 40 KiB, %d larger, up to %d bytes", p.tiny, p.classes, p.large, p.big)
	}
	for align := 1; align <= 4096; align *= 2 {
		if !p.aligns[align] {
			t.Errorf("no alignment of %d", align)
		}
	}
	if len(p.aligns) != 13 {
		t.Errorf("alignments %v", p.aligns)
	}
	if p.live != 0 || p.bytes != 0 {
		t.Errorf("%d blocks and %d bytes live at the end", p.live, p.bytes)
	}
	if p.mostLive > 256 || p.mostBytes > 80<<20 {
		t.Errorf("up to %d blocks and %d bytes live", p.mostLive, p.mostBytes)
	}
}

func TestRunSaysWhatWasWrong(t *testing.T) {
	for _, c := range []struct{ defect, want string }{
		{"capacity is not clipped", "cap"},
		{"a block is in the list twice", "overlaps"},
		{"a small block is not aligned", "is not at a multiple of"},
		{"Zeroed clears no more than a page", "byte 4096 is"},
		{"Resize moves the contents", "has changed"},
		{"a failed Resize writes to the block", "has changed"},
		{"an empty block is nil", "a nil block"},
	} {
		wantFailure(t, record(t, func(t testing.TB) {
			alloctest.RunProgram(t, newToy(c.defect), program(2000))
		}), c.want, "after ", " calls: ")
	}
}

// liar returns a chosen error, and perhaps a block as well.
type liar struct {
	freehold.Allocator
	block []byte
	err   error
}

func (l liar) Alloc(size, align int) ([]byte, error)  { return l.block, l.err }
func (l liar) Zeroed(size, align int) ([]byte, error) { return l.block, l.err }

func TestRunChecksErrors(t *testing.T) {
	for _, c := range []struct {
		a    liar
		want string
	}{
		{liar{err: errors.New("no luck")}, `the error "no luck" does not match ErrOutOfMemory`},
		{liar{block: make([]byte, 9), err: freehold.ErrOutOfMemory}, `a block of 9 bytes beside the error "freehold: out of memory"`},
	} {
		wantFailure(t, record(t, func(t testing.TB) { alloctest.RunProgram(t, c.a, program(5)) }), c.want)
	}
}
