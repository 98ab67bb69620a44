//go:build peer_goheap || peer_ristretto

package alloc

// A keeper keeps a block from being put on the stack.
type keeper struct {
	_ [128]byte // the other goroutine's is on other cache lines
	b block
	_ [128]byte
}

func (k *keeper) keep(b block) { k.b = b }
