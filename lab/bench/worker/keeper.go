// Keeper: on the Go heap a block that is not kept anywhere is not on the heap;
// the compiler puts it on the stack.

//go:build peer_goheap || (peer_ristretto && !jemalloc)

package main

type keeper struct{ b block }

func (k *keeper) keep(b block) { k.b = b }
