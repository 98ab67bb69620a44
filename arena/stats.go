// Stats: how much an arena holds, and how much of it blocks take.

package arena

// Stats is a snapshot of an arena's memory. Sizes are bytes.
type Stats struct {
	Live      int // live blocks, as [Arena.Live] counts them
	LiveBytes int // that blocks take, with padding and what was freed between them
	Reserved  int // in chunks, in use or spare
	Chunks    int // in use or spare
	MaxBytes  int // the limit on Reserved; 0 if there is none
}

// Stats returns the arena's figures. It is cheap, and may be called after Close.
func (a *Arena) Stats() Stats {
	return Stats{
		Live:      a.live,
		LiveBytes: a.usedBytes(),
		Reserved:  a.reserved,
		Chunks:    len(a.chunks),
		MaxBytes:  a.options.MaxBytes,
	}
}

// usedBytes returns the bytes below the tops of the chunks in use.
func (a *Arena) usedBytes() int { return a.filled + int(a.top-uintptr(a.base)) }

// Remaining returns the size, in bytes, of the largest block with an alignment of
// 1 that needs no memory from the parent: the room behind the newest block, or
// the largest spare chunk. In an arena of [NewFixed] it is all that is left. It
// takes a look at each spare chunk.
func (a *Arena) Remaining() int {
	n := int(a.end - a.top)
	for _, c := range a.chunks[a.used:] {
		n = max(n, len(c.mem))
	}
	return n
}
