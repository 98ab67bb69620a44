//go:build peer_pointer || peer_modernc || peer_cgo || peer_cgo_jemalloc

package alloc

import "unsafe"

type block = unsafe.Pointer

func touch(b block)               { *(*byte)(b) = 1 }
func first(b block) byte          { return *(*byte)(b) }
func bytes(b block, n int) []byte { return unsafe.Slice((*byte)(b), n) }
