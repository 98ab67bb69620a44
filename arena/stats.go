// Stats: how much an arena holds, and how much of it blocks take.

package arena

// Stats is a snapshot of an arena's memory.
type Stats struct {
	Used     int // bytes in blocks, padding and what was freed between them included
	Reserved int // bytes in chunks, in use or spare
	Chunks   int // in use or spare
	Blocks   int // as Outstanding counts them
	MaxBytes int // the limit on Reserved; 0 if there is none
}

// Stats returns the arena's figures. It is cheap, and may be
// called after Close.
func (a *Arena) Stats() Stats {
	return Stats{
		Used:     a.usedBytes(),
		Reserved: a.reserved,
		Chunks:   len(a.chunks),
		Blocks:   a.live,
		MaxBytes: a.options.MaxBytes,
	}
}

func (a *Arena) usedBytes() int { return a.filled + int(a.top-uintptr(a.base)) }
