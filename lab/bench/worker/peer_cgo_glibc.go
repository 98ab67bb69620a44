//go:build cgo && peer_cgo

package main

/*
#include <stdlib.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
static const char *bench_version(void) { return gnu_get_libc_version(); }
#else
static const char *bench_version(void) { return "of this system"; }
#endif
*/
import "C"

func version() string { return "libc " + C.GoString(C.bench_version()) }
