package main

import (
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/freehold-go/freehold/cmalloc"
)

var jemallocBackend = backendKind{
	name:    "jemalloc",
	title:   "jemalloc",
	about:   "jemalloc, through cgo: free returns a block at once, trim purges all arenas; it looks at its decay when it is called, or in the background with MALLOC_CONF=background_thread:true",
	decay:   10 * time.Second, // jemalloc's default
	preload: preloadJemalloc,
	open:    func(limit int64) (backend, error) { return openCHeap("jemalloc", limit) },
}

// jemallocLibrary is found by the dynamic linker.
const jemallocLibrary = "libjemalloc.so.2"

// preloadJemalloc implements backendKind.preload. A build with -tags jemalloc
// needs nothing; elsewhere the library is put before the C library's malloc, and
// newCHeap sees in that process whether it is there.
func preloadJemalloc() (string, error) {
	if _, err := cmalloc.New(); err != nil {
		return "", unavailablef("jemalloc: %w", err)
	}
	now := os.Getenv(preloadVariable)
	if name, _ := cmalloc.Implementation(); name == "jemalloc" || strings.Contains(now, jemallocLibrary) {
		return "", nil
	}
	if runtime.GOOS != "linux" {
		return "", unavailablef("jemalloc: on %s, build with -tags jemalloc", runtime.GOOS)
	}
	return strings.TrimSuffix(jemallocLibrary+":"+now, ":"), nil
}
