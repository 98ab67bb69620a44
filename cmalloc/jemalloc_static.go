// Static jemalloc: libjemalloc.a and the libraries that it needs.

//go:build cgo && unix && jemalloc && jemalloc_static

package cmalloc

// #cgo LDFLAGS: -Wl,-Bstatic -ljemalloc -Wl,-Bdynamic -lstdc++ -lm
import "C"
