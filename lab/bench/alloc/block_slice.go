//go:build !(peer_pool || peer_pool_cache || peer_pointer || peer_modernc || peer_cgo || peer_cgo_jemalloc)

package alloc

type block = []byte

func touch(b block)               { b[0] = 1 }
func first(b block) byte          { return b[0] }
func bytes(b block, n int) []byte { return b[:n] }
