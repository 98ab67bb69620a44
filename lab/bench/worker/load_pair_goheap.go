// Pair on the Go heap: new of a size known to the compiler, its best case.

//go:build peer_goheap

package main

// A pair keeps each block in a field until the next one comes, so that the
// compiler cannot put it on the stack.
type pair struct {
	size, sum uint64
	_         [128]byte // the other thread's pair is on other cache lines

	b16   *[16]byte
	b64   *[64]byte
	b256  *[256]byte
	b1K   *[1 << 10]byte
	b4K   *[4 << 10]byte
	b64K  *[64 << 10]byte
	b1M   *[1 << 20]byte
	other []byte
	_     [128]byte
}

func runPair(p *params) result {
	return runThreads(p, func(int) looper { return &pair{size: uint64(p.Min)} })
}

func (l *pair) loop(n int) {
	switch l.size {
	case 16:
		for range n {
			l.b16 = new([16]byte)
			l.b16[0] = 1
		}
	case 64:
		for range n {
			l.b64 = new([64]byte)
			l.b64[0] = 1
		}
	case 256:
		for range n {
			l.b256 = new([256]byte)
			l.b256[0] = 1
		}
	case 1 << 10:
		for range n {
			l.b1K = new([1 << 10]byte)
			l.b1K[0] = 1
		}
	case 4 << 10:
		for range n {
			l.b4K = new([4 << 10]byte)
			l.b4K[0] = 1
		}
	case 64 << 10:
		for range n {
			l.b64K = new([64 << 10]byte)
			l.b64K[0] = 1
		}
	case 1 << 20:
		for range n {
			l.b1M = new([1 << 20]byte)
			l.b1M[0] = 1
		}
	default:
		for range n {
			l.other = make([]byte, int(l.size))
			l.other[0] = 1
		}
	}
	l.sum += l.size * uint64(n)
}

func (l *pair) checksum() uint64 { return l.sum }
