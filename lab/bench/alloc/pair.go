//go:build !peer_goheap && !peer_pool && !peer_pool_cache

package alloc

// pair must not be inlined: in a copy of its loop the compiler inlines nothing.
//
//go:noinline
func pair(size int) func(n int) uint64 {
	kept := &keeper{}
	return func(n int) uint64 {
		for range n {
			b := must(alloc(size))
			kept.keep(b)
			touch(b)
			free(b)
		}
		return uint64(n * size)
	}
}
