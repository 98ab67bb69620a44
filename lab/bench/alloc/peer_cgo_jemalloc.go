// Linking jemalloc replaces malloc for the whole program; its own mallctl says
// that it did.

//go:build cgo && peer_cgo_jemalloc

package alloc

/*
#cgo pkg-config: jemalloc
#include <jemalloc/jemalloc.h>

static const char *bench_version(void) {
	const char *v = "?";
	size_t n = sizeof v;
	mallctl("version", &v, &n, NULL, 0);
	return v;
}
*/
import "C"

import "fmt"

const peer = "cgo-jemalloc"

func init() { fmt.Println("allocator: jemalloc", C.GoString(C.bench_version())) }
