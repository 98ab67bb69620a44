// Package cmalloc is a [freehold.Allocator] on C's malloc, through cgo, or on
// jemalloc.
//
//	heap, err := cmalloc.New()
//	if err != nil {
//		return err // this build has no cgo
//	}
//
// It is for programs that share a heap with C code, for programs that move to
// freehold from a malloc of their own, and for comparisons. Otherwise
// [freehold.Heap] is the better choice. It is several times as fast
// (BenchmarkPair), since the call into C takes most of the time here. It needs no
// C compiler, and it detects a double free, which corrupts C's heap.
//
// # Which malloc
//
// Without build tags it is the malloc of the program: the C library's, or one that
// replaces it, for instance by LD_PRELOAD. [Implementation] tells which. If that is
// a jemalloc, Stats and Trim are jemalloc's.
//
// With -tags jemalloc it is jemalloc, as pkg-config finds it: Debian's package
// libjemalloc-dev, or one that was built with or without a prefix for its
// functions (--with-jemalloc-prefix=je_, as for ristretto; it is detected).
//
//	go build -tags jemalloc
//	PKG_CONFIG_PATH=/opt/jemalloc/lib/pkgconfig go build -a -tags jemalloc
//
// The -a is for the go command's cache, which does not notice a different answer of
// pkg-config.
//
// A jemalloc without a prefix, such as Debian's, is then the malloc of all C
// code in the program; one with a prefix serves this package alone. There is one
// malloc in a build: to compare two, compare two processes.
//
// To link jemalloc statically, add -tags jemalloc_static: it links libjemalloc.a and
// its dependencies. A program that is static as a whole needs no further tag:
//
//	go build -tags jemalloc,jemalloc_static
//	CGO_LDFLAGS='-lstdc++ -lm' go build -tags jemalloc -ldflags '-extldflags "-static"'
//
// jemalloc takes its options from the environment, MALLOC_CONF (JE_MALLOC_CONF if
// the prefix is je_).
//
// # Without cgo
//
// With CGO_ENABLED=0, the default when cross-compiling, and on systems other than
// Unix, the package compiles and [New] returns an error that matches
// [errors.ErrUnsupported] and says what is missing. It is not a build error, so that
// a program which offers malloc as one choice of several builds everywhere and can
// fall back on a freehold.Heap.
//
// # What is not detected
//
// C cannot tell its own blocks from other memory: [Heap] is not a [freehold.Owner],
// and a double or foreign free, or a Free of a part of a block, is undefined
// behaviour. Builds with -asan detect these, and uses after Free and overruns too,
// since AddressSanitizer replaces malloc. There, running out of memory is an error
// with ASAN_OPTIONS=allocator_may_return_null=1. The race detector does not see C's
// memory.
package cmalloc
