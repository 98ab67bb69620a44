// Package secret keeps keys, tokens and passwords in memory of their own, outside of Go's heap.
//
//	keys := secret.NewStore(&secret.Options{Need: secret.Locked | secret.NoDump})
//	key, err := keys.New(text) // copies text, and wipes it
//	defer key.Destroy()
//
//	err = key.Use(func(b []byte) error { ... }) // b is readable in here only
//
// The memory is locked, so that it is not swapped out, and left out of core dumps and of forked
// children. It is inaccessible unless a Use runs, and lies between inaccessible pages. On Linux with
// memfd_secret no other process can read it either, not even by ptrace. [Secret.Strength] says which
// of these the system gave:
//
//	                     Locked  Hidden  NoDump  NoFork  Closed  Guarded
//	Linux, memfd_secret     x       x       x       x       x       x
//	Linux, mlock            x               x       x       x       x
//	macOS, the BSDs         x                               x       x
//	Windows                                         x       x       x
//	js, wasip1
//
// # Where the bytes leave
//
// The package cannot follow copies: a string made of b, a cipher's key schedule, a stack frame or a
// register of the function that used b. Go's experimental package runtime/secret wipes those, which
// are Go's own memory; it neither locks them nor keeps them out of core dumps while they live. The
// two complete each other:
//
//	runtimesecret.Do(func() { err = key.Use(sign) })
//
// A core dump that is written during Use has the registers and the stacks too. A program that runs
// with the rights of the process, or a debugger that runs code in it, can call Use. A system that
// hibernates writes all memory to disk, except that Linux does not hibernate while there is hidden
// memory. Virtual machines are saved as a whole.
//
// # Several secrets in a page
//
// A limit of locked memory (RLIMIT_MEMLOCK, often 8 MiB) is one of pages. By default each secret
// has pages of its own: 2,048 secrets of up to 4 KiB fit in 8 MiB. With [Options.Share] the
// secrets of a store share pages, and 262,144 secrets of 32 bytes fit. The price: while one secret is
// in use, its neighbours in the page can be read too, by a wild pointer or an overread of C code. Go
// code without unsafe cannot: the capacity of b ends with the secret. Share suits secrets that
// belong to one owner, such as the session keys of a server.
package secret
