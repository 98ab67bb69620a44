// Package cmalloc is a [freehold.Allocator] on C's malloc, through cgo, or on
// jemalloc.
//
//	heap, err := cmalloc.New()
//	if err != nil {
//		return err // this build has no cgo
//	}
//
// It is for programs that share a heap with C code, for programs that move to freehold from a
// malloc of their own, and for comparisons. Otherwise [freehold.Heap] is the better choice. It is
// several times as fast (BenchmarkPair), since here the call into C takes most of the time. It
// needs no C compiler, and it detects a double free, which corrupts C's heap.
//
// # Which malloc
//
// Without build tags it is the malloc of the program: the C library's, or one that replaces it, for
// instance by LD_PRELOAD. [Implementation] tells which. If that is jemalloc, Stats and Trim use
// jemalloc's interface.
//
// With -tags jemalloc it is the jemalloc that pkg-config finds: Debian's package libjemalloc-dev,
// or your own build. The build may have a prefix for its functions, which is detected
// (--with-jemalloc-prefix=je_, as for ristretto).
//
//	go build -tags jemalloc
//	PKG_CONFIG_PATH=/opt/jemalloc/lib/pkgconfig go build -a -tags jemalloc
//
// The -a is needed since the go command's cache does not notice that pkg-config finds another one.
//
// A jemalloc without a prefix, such as Debian's, becomes the malloc of all C code in the program;
// one with a prefix serves this package alone. A build has one malloc: to compare two, compare two
// processes.
//
// The tag jemalloc_static links libjemalloc.a and its dependencies. A program that is static as a
// whole does not need the tag:
//
//	go build -tags jemalloc,jemalloc_static
//	CGO_LDFLAGS='-lstdc++ -lm' go build -tags jemalloc -ldflags '-extldflags "-static"'
//
// jemalloc takes its options from the environment, MALLOC_CONF (JE_MALLOC_CONF if
// the prefix is je_).
//
// # Without cgo
//
// With CGO_ENABLED=0, the default when cross-compiling, and on systems other than Unix, the package
// compiles, and [New] returns an error that matches [errors.ErrUnsupported]. It is not a build
// error, so a program that offers malloc as one of several choices builds everywhere and can fall
// back on a freehold.Heap.
//
// # What is not detected
//
// C cannot tell its own blocks from other memory. So [Heap] is not a [freehold.Owner], and a double
// or foreign free, or a Free of a part of a block, is undefined behaviour. Builds with -asan detect
// these, and uses after Free and overruns too, since AddressSanitizer replaces malloc. There,
// running out of memory is an error only with ASAN_OPTIONS=allocator_may_return_null=1. The race
// detector does not see C's memory.
package cmalloc
