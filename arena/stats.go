// Stats: figures of an arena.

package arena

// Stats is a snapshot of an arena's memory. Sizes are bytes.
type Stats struct {
	Name      string // Options.Name
	Live      int    // live blocks, as [Arena.Live] counts them
	LiveBytes int    // in blocks, padding, and freed blocks between them
	Reserved  int    // in chunks, in use or spare
	Chunks    int    // in use or spare
	MaxBytes  int    // the limit on Reserved; 0 if there is none
}

// Stats returns the arena's figures. It costs a few loads, and may be called after
// Close.
func (a *Arena) Stats() Stats {
	return Stats{
		Name:      a.options.Name,
		Live:      a.live,
		LiveBytes: a.usedBytes(),
		Reserved:  a.reserved,
		Chunks:    len(a.chunks),
		MaxBytes:  a.options.MaxBytes,
	}
}

// usedBytes returns the bytes below the tops of the chunks in use.
func (a *Arena) usedBytes() int { return a.filled + int(a.top-uintptr(a.base)) }

// Remaining returns the size, in bytes, of the largest block of alignment 1 that needs no memory
// from the parent: the rest of the current chunk, or the largest spare chunk. For an arena of
// [NewFixed] that is all the free memory. It visits each spare chunk.
func (a *Arena) Remaining() int {
	n := int(a.end - a.top)
	for _, c := range a.chunks[a.used:] {
		n = max(n, len(c.mem))
	}
	return n
}
