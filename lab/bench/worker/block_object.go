// Block: what the peers that hand out values of one type return.

//go:build peer_pool || peer_pool_cache

package main

type block = *object

func touch(b block)               { b[0] = 1 }
func first(b block) byte          { return b[0] }
func bytes(b block, n int) []byte { return b[:n] }
