// Bump: blocks of one size that all end at once, after each 1 MiB.
//
// Several goroutines share one allocator, and each resets it after 1 MiB of its
// own. It allocates under a guard, as those must who do not know when others
// reset.

//go:build peer_arena || peer_shared || peer_ristretto_allocator || peer_loop

package main

import (
	"errors"

	"github.com/freehold-go/freehold/lab/bench/sample"
)

// bumpBytes is what a goroutine allocates between two resets.
const bumpBytes = 1 << 20

func init() {
	loads["bump"] = runBump
	loads["bumpnew"] = runBumpNew
}

type bumper struct {
	size, left int // bytes of a block; blocks until the next reset
	sum        uint64
	_          [128]byte // the other thread's is on other cache lines
}

func runBump(p *params) result {
	return runThreads(p, func(int) looper { return &bumper{size: p.Min, left: bumpBytes / p.Min} })
}

func (l *bumper) loop(n int) {
	l.sum += uint64(l.size) * uint64(n)
	for n > 0 {
		batch, size := min(n, l.left), l.size
		g := enter()
		for range batch {
			b, err := bump(size)
			if err != nil {
				sample.Fail(err)
			}
			touch(b)
		}
		g.Leave()
		l.passed(batch)
		n -= batch
	}
}

// passed counts n blocks, and resets after the last one.
func (l *bumper) passed(n int) {
	if l.left -= n; l.left == 0 {
		reset()
		l.left = bumpBytes / l.size
	}
}

func (l *bumper) checksum() uint64 { return l.sum }

var errNotZero = errors.New("a new object is not zero")

// A newBumper allocates objects, which are zero.
type newBumper struct{ bumper }

func runBumpNew(p *params) result {
	size := len(object{})
	return runThreads(p, func(int) looper { return &newBumper{bumper{size: size, left: bumpBytes / size}} })
}

func (l *newBumper) loop(n int) {
	l.sum += uint64(l.size) * uint64(n)
	for n > 0 {
		batch := min(n, l.left)
		g := enter()
		for range batch {
			o, err := bumpNew()
			if err != nil {
				sample.Fail(err)
			}
			if o[0] != 0 {
				sample.Fail(errNotZero)
			}
			o[0] = 1
		}
		g.Leave()
		l.passed(batch)
		n -= batch
	}
}
