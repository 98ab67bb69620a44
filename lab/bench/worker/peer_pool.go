// Peer: freehold's Pool of objects, whose blocks are zero.

//go:build peer_pool

package main

import (
	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/epoch"
	"github.com/freehold-go/freehold/pool"
)

var objects = pool.New[object](freehold.NewHeap(nil), nil)

// An object, whatever the size: these rows run loads of 64 B.
func alloc(int) (block, error)  { return objects.Get() }
func zeroed(int) (block, error) { return objects.Get() }
func free(b block)              { objects.Put(b) }

func realloc(b block, _, _ int) (block, error) { return b, errCannot }

func enter() epoch.Guard { return objects.Enter() }

func version() string { return "freehold, " + goVersion() }
