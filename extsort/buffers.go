// Buffers: the memory of merges.
//
//	rest    | buffer | buffer | ...
//	buffer  | out | last | window | window | ...

package extsort

// A buffer is the memory of one merge: a window for each run, and the output.
type buffer struct {
	windows []byte
	each    int // bytes of a window
	out     []byte
	last    []byte // the key before, if equal ones are dropped
	cursors []cursor
}

// window returns window i, nothing if the runs are in memory.
func (b *buffer) window(i int) []byte { return b.windows[i*b.each:][:b.each] }

// minWindow is the least that a merge reads at a time, but for small memory.
const minWindow = 64 << 10

// buffers divides the rest of the memory for up to n merges of so many runs at a
// time, with a longest record of maxStored bytes. It returns none if there is not
// enough for one.
func (p *plan) buffers(n, runs, maxStored int) []*buffer {
	least := max(min(minWindow, len(p.rest)/16), maxStored) + 2*blockAlign
	last := roundUp(maxStored, blockAlign)
	for ; n > 0; n-- {
		each := len(p.rest) / n &^ (blockAlign - 1)
		out := min(each/4&^(blockAlign-1), maxPartBytes)
		window := (each - out - last) / max(runs, 1) &^ (blockAlign - 1)
		if window < least {
			continue
		}
		bs := make([]*buffer, n)
		for i := range bs {
			mem := p.rest[i*each:][:each]
			bs[i] = &buffer{out: mem[:0:out], last: mem[out : out : out+last], windows: mem[out+last:], each: window}
		}
		return bs
	}
	return nil
}

// fan returns how many runs each of n merges can take at a time, 0 if less than
// two.
func (p *plan) fan(n, maxStored int) int {
	runs := 0
	for len(p.buffers(n, max(2, runs+1), maxStored)) == n {
		runs = max(2, runs+1)
	}
	return runs
}

const maxPartBytes = 4 << 20
