// Searches in assembly: see search_amd64.s.

//go:build !race && !freehold_portable && !asan

package cuckoo

import "github.com/freehold-go/freehold/internal/pin"

// entries returns the addresses of the functions in search_amd64.s.
func entries() *uintptr

type searches struct {
	search func(ix *Index, tag uint32) (one, two, matches uint32)
}

var assembly = pin.Assembly(searches{searchInGo}, entries())

func search(ix *Index, tag uint32) (one, two, matches uint32) { return assembly.search(ix, tag) }
