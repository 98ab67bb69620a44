// Growth: buckets are added and removed one at a time.
//
//	             0         i         high      n
//	| split once more |  not yet  | new ones |
//
// With n buckets, high is the largest power of two up to n. Bucket n takes from bucket n-high the
// slots whose homes it is then. Both follow from the slots' tags, so no key is read. Removing the
// last bucket is the reverse.

package cache

// isFull reports whether the index should grow before it has another slot.
func (ix *index) isFull() bool {
	return (ix.used+1)*100 > int(ix.buckets.Load())*bucketSlots*fullPercent
}

// hasNext reports whether there is memory for one more bucket.
func (ix *index) hasNext() bool { return int(ix.buckets.Load())>>ix.perBits < ix.chunks.len() }

// begin makes the first chunk, which is there, the index.
func (ix *index) begin() { ix.buckets.Store(1 << ix.perBits) }

// split adds a bucket.
//
// Precondition: hasNext.
func (ix *index) split() {
	n := ix.buckets.Load()
	from := linear(n, n)
	low, high := ix.bucket(from), ix.bucket(n)
	high.ghosts = low.ghosts
	ix.moves.Add(1)
	for j := range low.slots {
		w := slot(low.slots[j].Load())
		if one, two := homes(w.tag(), n+1); w == 0 || one == from || two == from {
			high.slots[j].Store(0)
			continue
		}
		high.slots[j].Store(uint64(w))
		low.slots[j].Store(0)
	}
	ix.buckets.Store(n + 1)
	ix.moves.Add(1)
}

// merge removes the last bucket, and returns the slots for which there is no room then.
func (ix *index) merge() (dropped []slot) {
	n := ix.buckets.Load() - 1
	last := ix.bucket(n)
	ix.moves.Add(1)
	ix.buckets.Store(n)
	for j := range last.slots {
		w := slot(last.slots[j].Load())
		if w == 0 {
			continue
		}
		to := ix.free(w)
		if to == nil {
			to = ix.displace(w)
		}
		if to != nil {
			to.Store(uint64(w))
		} else {
			ix.used--
			dropped = append(dropped, w)
		}
		last.slots[j].Store(0)
	}
	ix.moves.Add(1)
	return dropped
}
