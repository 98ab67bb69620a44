// Peer: C's malloc through cgo, with the annotations that make cgo cheapest.
// Which malloc that is, the linker says: see peer_cgo_glibc.go and
// peer_cgo_jemalloc.go.

//go:build cgo && (peer_cgo || peer_cgo_jemalloc)

package alloc

/*
#cgo noescape bench_malloc
#cgo nocallback bench_malloc
#cgo noescape bench_calloc
#cgo nocallback bench_calloc
#cgo noescape bench_realloc
#cgo nocallback bench_realloc
#cgo noescape bench_free
#cgo nocallback bench_free
#include <stdlib.h>

static void *bench_malloc(size_t n)           { return malloc(n); }
static void *bench_calloc(size_t n)           { return calloc(1, n); }
static void *bench_realloc(void *p, size_t n) { return realloc(p, n); }
static void bench_free(void *p)               { free(p); }
*/
import "C"

import "errors"

var errNull = errors.New("malloc returned NULL")

func alloc(n int) (block, error)  { return found(C.bench_malloc(C.size_t(n))) }
func zeroed(n int) (block, error) { return found(C.bench_calloc(C.size_t(n))) }
func free(b block)                { C.bench_free(b) }

func realloc(b block, _, n int) (block, error) { return found(C.bench_realloc(b, C.size_t(n))) }

func found(b block) (block, error) {
	if b == nil {
		return nil, errNull
	}
	return b, nil
}
