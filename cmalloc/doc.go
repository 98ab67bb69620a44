// Package cmalloc is a [freehold.Allocator] on C's malloc, through cgo, or on
// jemalloc.
//
//	heap, err := cmalloc.New()
//	if err != nil {
//		return err // this build has no cgo
//	}
//
// It is for programs that must share a heap with C code, for a program that
// moves to freehold from a malloc of its own, and for comparisons. Otherwise
// [freehold.Heap] is the better choice: a pair of Alloc and Free of 64 bytes
// costs 68 ns here, most of it the way into C and back, and 10 ns there
// (BenchmarkPair); it needs no C compiler; and it finds a double free, where C
// goes on with a broken heap.
//
// # Which malloc
//
// Without build tags it is the malloc that the program has: the C library's,
// or one that stands in for it, by LD_PRELOAD for instance. [Implementation]
// tells which. With a jemalloc that stands in, Stats and Trim are jemalloc's.
//
// With -tags jemalloc it is jemalloc, as pkg-config finds it: Debian's package
// libjemalloc-dev, or one that was built with or without a prefix for its
// functions (--with-jemalloc-prefix=je_, as for ristretto; it is detected).
//
//	go build -tags jemalloc
//	PKG_CONFIG_PATH=/opt/jemalloc/lib/pkgconfig go build -a -tags jemalloc
//
// The go command's cache does not notice that pkg-config has another answer than
// before, hence the -a.
//
// A jemalloc without a prefix, such as Debian's, is then the malloc of all C
// code in the program; one with a prefix serves this package alone. There is one
// malloc in a build: to compare two, compare two processes.
//
// To have jemalloc in the program and not beside it, add -tags jemalloc_static,
// which links libjemalloc.a and what it needs; all else stays as it is. A
// program that is static as a whole needs no further tag:
//
//	go build -tags jemalloc,jemalloc_static
//	CGO_LDFLAGS='-lstdc++ -lm' go build -tags jemalloc -ldflags '-extldflags "-static"'
//
// jemalloc takes its options from the environment, MALLOC_CONF (JE_MALLOC_CONF if
// the prefix is je_).
//
// # Without cgo
//
// With CGO_ENABLED=0, which is what cross-compiling means by default, and where
// the system is no Unix, the package compiles and [New] returns an error, one
// that matches [errors.ErrUnsupported] and says what is missing. It is not a build
// error because C's malloc is mostly one choice of several: a program that
// offers it must build everywhere, and can fall back on a freehold.Heap.
//
// # What is not detected
//
// C does not know its own blocks: [Heap] is no [freehold.Owner], and a double or
// foreign free, or a Free of a part of a block, is undefined there. Builds with
// -asan see these, and uses after Free and overruns too, since AddressSanitizer
// stands in for malloc; with ASAN_OPTIONS=allocator_may_return_null=1 running out
// is an error there as well. The race detector does not see C's memory.
package cmalloc
