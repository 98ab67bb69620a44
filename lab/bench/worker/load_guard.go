// Guard: a reader's stay, entered and left.

//go:build peer_shared || peer_pool

package main

func init() { loads["guard"] = runGuard }

type reader struct {
	sum uint64
	_   [128]byte // the other thread's is on other cache lines
}

func runGuard(p *params) result {
	return runThreads(p, func(int) looper { return &reader{} })
}

func (l *reader) loop(n int) {
	for range n {
		g := enter()
		g.Leave()
	}
	l.sum += uint64(n)
}

func (l *reader) checksum() uint64 { return l.sum }
