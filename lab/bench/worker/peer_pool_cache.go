// Peer: freehold's Pool of objects through a Cache, for one goroutine.

//go:build peer_pool_cache

package main

import (
	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/pool"
)

var objects = pool.New[object](freehold.NewHeap(nil), nil).NewCache()

// An object, whatever the size: these rows run loads of 64 B.
func alloc(int) (block, error)  { return objects.Get() }
func zeroed(int) (block, error) { return objects.Get() }
func free(b block)              { objects.Put(b) }

func realloc(b block, _, _ int) (block, error) { return b, errCannot }

func version() string { return "freehold, " + goVersion() }
