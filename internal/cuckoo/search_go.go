//go:build !amd64 || race || freehold_portable || asan

package cuckoo

func search(ix *Index, tag uint32) (one, two, matches uint32) { return searchInGo(ix, tag) }
