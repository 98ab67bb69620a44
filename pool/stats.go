// Stats: counts of blocks and bytes.

package pool

// Stats is a snapshot of a pool.
type Stats struct {
	Name      string // Options.Name
	BlockSize int    // bytes in a block, before rounding
	Live      int    // blocks handed out and neither freed nor retired
	LiveBytes int    // Live * BlockSize
	Retired   int    // blocks that were retired and that a guard may protect
	Blocks    int    // blocks in all chunks: live, retired and free
	Chunks    int    // chunks from the parent
	Reserved  int    // bytes from the parent: chunks and their metadata
	MaxBlocks int    // the limit of Blocks; 0 if there is none
	MaxBytes  int    // the limit of Reserved; 0 if there is none
}

// Stats returns the pool's figures. First it frees the retired blocks that no guard protects. Get
// and Put count nothing, so Stats reads a word for each block, which takes about a millisecond for
// a million. A block that is freed or retired during the call may be counted twice or not at all.
func (b *Blocks) Stats() Stats { return b.stats("pool.Blocks.Stats") }

func (b *Blocks) stats(call string) Stats {
	b.mustBeMade(call)
	b.collect(true)
	live, retired := b.count(call)
	b.central.mu.Lock()
	defer b.central.mu.Unlock()
	return Stats{
		Name:      b.limits.Name,
		BlockSize: b.bytes,
		Live:      live,
		LiveBytes: live * b.bytes,
		Retired:   retired,
		Blocks:    b.central.blocks,
		MaxBlocks: b.limits.MaxBlocks,
		Chunks:    len(b.central.chunks),
		Reserved:  b.central.bytes,
		MaxBytes:  b.limits.MaxBytes,
	}
}

// Live returns the number of live blocks: handed out and neither freed nor retired. It costs as
// much as Stats. After Close it is 0.
func (b *Blocks) Live() int {
	live, _ := b.count("pool.Blocks.Live")
	return live
}

// count returns the numbers of live and of retired blocks.
func (b *Blocks) count(call string) (live, retired int) {
	b.mustBeMade(call)
	b.central.mu.Lock()
	defer b.central.mu.Unlock()
	for _, c := range b.central.chunks {
		for i := range c.blocks {
			if st := b.status(c, i).load(); st == statusLive || st >= statusOfCache {
				live++
			}
		}
	}
	b.eachCache(func(c *cache) { live -= c.len() })
	b.retireList.mu.Lock()
	defer b.retireList.mu.Unlock()
	return max(live, 0), b.retireList.queue.Len()
}

// exhausted reports whether no block is free except in caches, and collect would free none.
func (b *Blocks) exhausted() bool {
	b.central.mu.Lock()
	defer b.central.mu.Unlock()
	for _, c := range b.central.chunks {
		for i := range c.blocks {
			if st := b.status(c, i).load(); st == statusFree || st == statusMoving {
				return false
			}
		}
	}
	return !b.retireList.due(b.epochs)
}
