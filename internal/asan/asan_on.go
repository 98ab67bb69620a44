//go:build asan

package asan

// #cgo CFLAGS: -fsanitize=address
// #cgo LDFLAGS: -fsanitize=address
// #include <stdint.h>
// #include <sanitizer/asan_interface.h>
//
// static void poison(uintptr_t at, uintptr_t size) { __asan_poison_memory_region((void *)at, size); }
// static void unpoison(uintptr_t at, uintptr_t size) { __asan_unpoison_memory_region((void *)at, size); }
import "C"

import "unsafe"

// Enabled reports whether the program is built with -asan.
const Enabled = true

// Poison makes each later access to b an error that ends the program. Units of 8 bytes that b
// fills in part, at its beginning, stay accessible.
func Poison(b []byte) { C.poison(address(b), C.uintptr_t(len(b))) }

// Unpoison makes b accessible.
func Unpoison(b []byte) { C.unpoison(address(b), C.uintptr_t(len(b))) }

func address(b []byte) C.uintptr_t { return C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }
