// Jemalloc in the program itself: what a file libjemalloc.a needs beside it.

//go:build cgo && unix && jemalloc && jemalloc_static

package cmalloc

// #cgo LDFLAGS: -Wl,-Bstatic -ljemalloc -Wl,-Bdynamic -lstdc++ -lm
import "C"
