// Programs: random calls on an allocator, made from a seed.
//
// A program depends only on its seed, never on an allocator's answers. So its digest, of all
// bytes that it reads, must be the same on every allocator. It never reads undefined memory.

package soak

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"math/rand/v2"

	"github.com/freehold-go/freehold"
)

const (
	roundCalls = 2000 // then all blocks are freed
	maxLive    = 200
)

// noise is the data with which blocks are filled, each from another offset.
var noise = func() []byte {
	b := make([]byte, 3<<20)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(b)
	return b
}()

// hashing is one seed for the whole process, so digests can be compared.
var hashing = maphash.MakeSeed()

// A program holds live blocks, each filled with noise.
type program struct {
	a      freehold.Allocator
	random *rand.Rand
	live   []held
	digest uint64
}

type held struct {
	b     []byte
	align int
	from  int // the offset of its contents in noise
}

// run makes the given number of random calls on a and returns the digest. It calls between when
// no block is live.
func run(a freehold.Allocator, seed uint64, calls int, between func()) (digest uint64, err error) {
	p := program{a: a, random: rand.New(rand.NewPCG(seed, 0))}
	for n := 0; n < calls; {
		for end := min(calls, n+roundCalls); n < end; n++ {
			if err := p.step(); err != nil {
				return 0, fmt.Errorf("call %d: %w", n, err)
			}
		}
		for len(p.live) > 0 {
			if err := p.free(len(p.live) - 1); err != nil {
				return 0, fmt.Errorf("after call %d: %w", n, err)
			}
		}
		between()
	}
	return p.digest, nil
}

// size returns a random size: usually up to 256 bytes, rarely up to 2 MiB.
func (p *program) size() int {
	switch k := p.random.IntN(1000); {
	case k < 600:
		return p.random.IntN(257)
	case k < 900:
		return p.random.IntN(4 << 10)
	case k < 999:
		return p.random.IntN(48 << 10)
	}
	return p.random.IntN(2 << 20)
}

func (p *program) step() error {
	call := p.random.IntN(100)
	switch {
	case len(p.live) == 0 || call < 30 && len(p.live) < maxLive:
		return p.alloc(false)
	case call < 45 && len(p.live) < maxLive:
		return p.alloc(true)
	case call < 60:
		return p.realloc(p.random.IntN(len(p.live)))
	}
	return p.free(p.random.IntN(len(p.live)))
}

func (p *program) alloc(zeroed bool) error {
	size, align := p.size(), 8
	if p.random.IntN(8) == 0 {
		align = 1 << p.random.IntN(13)
	}
	call := p.a.Alloc
	if zeroed {
		call = p.a.Zeroed
	}
	b, err := call(size, align)
	if err != nil {
		return err
	}
	if zeroed {
		if len(b) > 0 && (b[0] != 0 || !bytes.Equal(b[1:], b[:len(b)-1])) {
			return fmt.Errorf("Zeroed(%d, %d) is not zero", size, align)
		}
		p.read(b)
	}
	return p.hold(b, size, align)
}

// hold fills a block that a call has returned, and adds it to the live ones.
func (p *program) hold(b []byte, size, align int) error {
	if len(b) != size || cap(b) != size || b == nil {
		return fmt.Errorf("%d bytes with a capacity of %d, where %d were asked for", len(b), cap(b), size)
	}
	h := held{b, align, p.random.IntN(len(noise) - size)}
	copy(b, noise[h.from:])
	p.live = append(p.live, h)
	return nil
}

// take removes a block from the live ones and checks it.
func (p *program) take(i int) (held, error) {
	h, last := p.live[i], len(p.live)-1
	p.live[i] = p.live[last]
	p.live = p.live[:last]
	if !bytes.Equal(h.b, noise[h.from:][:len(h.b)]) {
		return h, fmt.Errorf("a block of %d bytes at %p has changed", len(h.b), h.b)
	}
	p.read(h.b)
	return h, nil
}

func (p *program) free(i int) error {
	h, err := p.take(i)
	if err == nil {
		p.a.Free(h.b)
	}
	return err
}

func (p *program) realloc(i int) error {
	h, err := p.take(i)
	if err != nil {
		return err
	}
	size := p.size()
	b, err := freehold.Realloc(p.a, h.b, size, h.align)
	if err != nil {
		return err
	}
	kept := min(size, len(h.b))
	if len(b) < kept || !bytes.Equal(b[:kept], noise[h.from:][:kept]) {
		return fmt.Errorf("Realloc of %d bytes to %d lost some", len(h.b), size)
	}
	p.read(b[:kept])
	return p.hold(b, size, h.align)
}

// read adds bytes to the digest.
func (p *program) read(b []byte) { p.digest = p.digest*31 + maphash.Bytes(hashing, b) }
