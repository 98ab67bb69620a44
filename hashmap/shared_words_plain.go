// Stores that readers may see at any moment, as plain stores.
//
// On amd64, the store of a byte or of an aligned word is atomic, and processors see stores in
// program order. The compiler keeps that order too. It may drop a store if another one to the same
// address follows. Only setValue needs such a store, and it uses sync/atomic.

//go:build amd64 && !race

package hashmap

func storeWord(p *uintptr, w uintptr) { *p = w }
func store64(p *uint64, w uint64)     { *p = w }

// storeByte stores a tag or the overflow bits of a group.
func (l *layout) storeByte(p *uint8, b uint8) { *p = b }
