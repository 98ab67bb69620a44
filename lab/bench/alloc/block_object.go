//go:build peer_pool || peer_pool_cache

package alloc

type block = *object

func touch(b block)               { b[0] = 1 }
func first(b block) byte          { return b[0] }
func bytes(b block, n int) []byte { return b[:n] }

// An object, whatever the size: these peers run loads of 64 B.
func alloc(int) (block, error)  { return objects.Get() }
func zeroed(int) (block, error) { return objects.Get() }
func free(b block)              { objects.Put(b) }

func realloc(b block, _, _ int) (block, error) { return b, errCannot }

// pair calls Get and Put as a user's loop would: alloc of other peers is too large to be inlined
// here.
//
//go:noinline
func pair(size int) func(n int) uint64 {
	return func(n int) uint64 {
		for range n {
			o := must(objects.Get())
			o[0] = 1
			objects.Put(o)
		}
		return uint64(n * size)
	}
}
