// Libc: the calls into the program's malloc.
//
// It may be the C library's, or one that replaces it. Its name comes from the library in which the
// dynamic linker finds malloc. A mallctl alone does not prove a jemalloc: malloc is jemalloc's if a
// call changes mallctl's figures.

//go:build cgo && unix && !jemalloc

package cmalloc

/*
#cgo CFLAGS: -D_GNU_SOURCE -fno-builtin-malloc -fno-builtin-calloc
#cgo linux LDFLAGS: -ldl
#cgo noescape freehold_alloc
#cgo nocallback freehold_alloc
#cgo noescape freehold_zeroed
#cgo nocallback freehold_zeroed
#cgo noescape freehold_room
#cgo nocallback freehold_room
#cgo noescape freehold_free
#cgo nocallback freehold_free
#cgo noescape freehold_stats
#cgo nocallback freehold_stats
#cgo noescape freehold_trim
#cgo nocallback freehold_trim

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include "mallctl.h"

#if defined(__linux__)
#include <malloc.h>
#define ROOM(p) malloc_usable_size(p)
#elif defined(__APPLE__)
#include <malloc/malloc.h>
#define ROOM(p) malloc_size(p)
#elif defined(__FreeBSD__)
#include <malloc_np.h>
#define ROOM(p) malloc_usable_size(p)
#else
#define ROOM(p) 0
#endif

static void *freehold_aligned(size_t size, size_t align) {
	void *p;
	return posix_memalign(&p, align < sizeof p ? sizeof p : align, size) == 0 ? p : NULL;
}

static void *freehold_alloc(size_t size, size_t align) {
	if (FREEHOLD_PLAIN(size, align)) {
		void *p = malloc(size);
		if (FREEHOLD_ALIGNED(p, align)) return p;
		free(p);
	}
	return freehold_aligned(size, align);
}

static void *freehold_zeroed(size_t size, size_t align) {
	if (FREEHOLD_PLAIN(size, align)) {
		void *p = calloc(1, size);
		if (FREEHOLD_ALIGNED(p, align)) return p;
		free(p);
	}
	void *p = freehold_aligned(size, align);
	return p ? memset(p, 0, size) : NULL;
}

static size_t freehold_room(uintptr_t p) { return ROOM((void *)p); }
static void freehold_free(uintptr_t p)   { free((void *)p); }

// The results of identify.
static freehold_mallctl *ctl;     // jemalloc's mallctl, if malloc is jemalloc's
static const char *stand_in;      // file of the library with malloc, if not the C library

static void identify(void) {
	freehold_mallctl *found;
	*(void **)&found = dlsym(RTLD_DEFAULT, "mallctl");
	if (found) {
		uint64_t before = 0, after = 0;
		size_t size = sizeof before;
		found("thread.allocated", &before, &size, NULL, 0);
		void *volatile p = malloc(1000);
		found("thread.allocated", &after, &size, NULL, 0);
		free(p);
		if (after > before) ctl = found;
	}
#ifdef __linux__
	// getppid is in the C library: no other library has reason to replace it.
	Dl_info m, l;
	void *our_malloc = dlsym(RTLD_DEFAULT, "malloc"), *libc = dlsym(RTLD_DEFAULT, "getppid");
	if (our_malloc && libc && dladdr(our_malloc, &m) && dladdr(libc, &l) && m.dli_fbase != l.dli_fbase)
		stand_in = m.dli_fname;
#endif
}

static const char *freehold_name(void) {
	identify();
	if (ctl) return "jemalloc";
	if (stand_in) return stand_in;
#ifdef __GLIBC__
	return "glibc";
#else
	return "libc";
#endif
}

#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

static const char *freehold_version(void) {
	if (ctl) return freehold_jemalloc_version(ctl);
	if (stand_in) return "";
#ifdef __GLIBC__
	return gnu_get_libc_version();
#else
	return "";
#endif
}

static void freehold_stats(struct freehold_stats *s) {
	if (ctl) {
		freehold_jemalloc_stats(ctl, s);
		return;
	}
	*s = (struct freehold_stats){-1, -1, -1, -1, -1, -1};
#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 33)
	if (!stand_in) {
		struct mallinfo2 m = mallinfo2();
		s->allocated = m.uordblks + m.hblkhd;
		s->mapped = m.arena + m.hblkhd;
	}
#endif
#endif
}

static void freehold_trim(void) {
	if (ctl) {
		freehold_jemalloc_trim(ctl);
		return;
	}
#ifdef __GLIBC__
	if (!stand_in) malloc_trim(0);
#endif
}
*/
import "C"

import (
	"path"
	"sync"
	"unsafe"
)

// missing is the reason why this build has no Heap, or nil.
var missing error

func alloc(size, align uintptr) unsafe.Pointer {
	return C.freehold_alloc(C.size_t(size), C.size_t(align))
}

func zeroed(size, align uintptr) unsafe.Pointer {
	return C.freehold_zeroed(C.size_t(size), C.size_t(align))
}

// resize returns the usable size of the block at addr. Other mallocs cannot resize in place.
func resize(addr, size uintptr) uintptr { return uintptr(C.freehold_room(C.uintptr_t(addr))) }

// free takes an address, not a pointer. That saves cgo's check that a pointer argument does not
// lead to Go pointers.
func free(addr uintptr) { C.freehold_free(C.uintptr_t(addr)) }

// identity calls identify once. Stats and Trim rely on its results.
var identity = sync.OnceValue(func() [2]string {
	return [2]string{path.Base(C.GoString(C.freehold_name())), C.GoString(C.freehold_version())}
})

func implementation() (name, version string) {
	id := identity()
	return id[0], id[1]
}

func readStats() Stats {
	identity()
	var s C.struct_freehold_stats
	C.freehold_stats(&s)
	return Stats{int(s.allocated), int(s.active), int(s.metadata), int(s.resident), int(s.mapped), int(s.retained)}
}

func trim() {
	identity()
	C.freehold_trim()
}
