// Stores that readers may see at any moment: see shared_words_plain.go.

//go:build !amd64 || race

package hashmap

import "sync/atomic"

func storeWord(p *uintptr, w uintptr) { atomic.StoreUintptr(p, w) }
func store64(p *uint64, w uint64)     { atomic.StoreUint64(p, w) }
