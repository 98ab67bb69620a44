// Stores that readers may see at any moment.
//
// On amd64, stores of an aligned word are atomic, and no processor sees stores out of
// order. The compiler keeps their order too. It may drop a store that another to the same
// address follows, which no caller needs: setValue, which does, uses sync/atomic.

//go:build amd64 && !race

package hashmap

func storeWord(p *uintptr, w uintptr) { *p = w }
func store64(p *uint64, w uint64)     { *p = w }
