// Jemalloc: the calls into jemalloc, with or without a prefix for its names.
//
// With JEMALLOC_NO_DEMANGLE the header leaves its macros defined. By these je_malloc means malloc
// in a jemalloc without a prefix, and je_malloc in one with the prefix.
//
// Free passes no size. je_sdallocx would save a lookup, but it derives the size class from the size
// that it gets. For a block with a large alignment that is not the length, and a wrong class would
// corrupt the heap.

//go:build cgo && unix && jemalloc

package cmalloc

/*
#cgo pkg-config: jemalloc
#cgo CFLAGS: -D_GNU_SOURCE -DJEMALLOC_NO_DEMANGLE -fno-builtin-malloc -fno-builtin-calloc
#cgo noescape freehold_alloc
#cgo nocallback freehold_alloc
#cgo noescape freehold_zeroed
#cgo nocallback freehold_zeroed
#cgo noescape freehold_resize
#cgo nocallback freehold_resize
#cgo noescape freehold_free
#cgo nocallback freehold_free
#cgo noescape freehold_stats
#cgo nocallback freehold_stats
#cgo noescape freehold_trim
#cgo nocallback freehold_trim

#include <jemalloc/jemalloc.h>
#include "mallctl.h"

static void *freehold_alloc(size_t size, size_t align) {
	if (FREEHOLD_PLAIN(size, align)) {
		void *p = je_malloc(size);
		if (FREEHOLD_ALIGNED(p, align)) return p;
		je_free(p);
	}
	return je_mallocx(size, MALLOCX_ALIGN(align));
}

static void *freehold_zeroed(size_t size, size_t align) {
	if (FREEHOLD_PLAIN(size, align)) {
		void *p = je_calloc(1, size);
		if (FREEHOLD_ALIGNED(p, align)) return p;
		je_free(p);
	}
	return je_mallocx(size, MALLOCX_ALIGN(align) | MALLOCX_ZERO);
}

static size_t freehold_resize(uintptr_t p, size_t size) { return je_xallocx((void *)p, size, 0, 0); }
static void freehold_free(uintptr_t p)                  { je_free((void *)p); }
static void freehold_stats(struct freehold_stats *s)    { freehold_jemalloc_stats(je_mallctl, s); }
static void freehold_trim(void)                         { freehold_jemalloc_trim(je_mallctl); }
static const char *freehold_version(void)               { return freehold_jemalloc_version(je_mallctl); }
*/
import "C"

import "unsafe"

// missing is the reason why this build has no Heap, or nil.
var missing error

func alloc(size, align uintptr) unsafe.Pointer {
	return C.freehold_alloc(C.size_t(size), C.size_t(align))
}

func zeroed(size, align uintptr) unsafe.Pointer {
	return C.freehold_zeroed(C.size_t(size), C.size_t(align))
}

// resize makes the block at addr size bytes long if that needs no move. It returns the block's
// usable size.
func resize(addr, size uintptr) uintptr {
	return uintptr(C.freehold_resize(C.uintptr_t(addr), C.size_t(size)))
}

// free takes an address, not a pointer. That saves cgo's check that a pointer argument does not
// lead to Go pointers.
func free(addr uintptr) { C.freehold_free(C.uintptr_t(addr)) }

func implementation() (name, version string) { return "jemalloc", C.GoString(C.freehold_version()) }

func readStats() Stats {
	var s C.struct_freehold_stats
	C.freehold_stats(&s)
	return Stats{int(s.allocated), int(s.active), int(s.metadata), int(s.resident), int(s.mapped), int(s.retained)}
}

func trim() { C.freehold_trim() }
