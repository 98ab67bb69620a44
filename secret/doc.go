// Package secret keeps keys, tokens and passwords in memory of their own, outside of Go's heap.
//
//	keys := secret.NewStore(&secret.Options{Need: secret.Locked | secret.NoDump})
//	key, err := keys.New(text) // copies text, and wipes it
//	defer key.Destroy()
//
//	err = key.Use(func(b []byte) error { ... }) // b is readable in here only
//
// The memory is locked, so it is never swapped out. Core dumps and forked children do not have it. It
// is inaccessible unless a Use runs, and is between inaccessible pages. On Linux with memfd_secret no
// other process can read it either, not even by ptrace. [Secret.Strength] returns the properties that
// the system gave:
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
// The package does not protect copies: a string made of b, a cipher's key schedule, a stack frame or
// a register of the function that used b. Go's experimental package runtime/secret wipes those after
// use. Until then it neither locks them nor keeps them out of core dumps. Use both:
//
//	runtimesecret.Do(func() { err = key.Use(sign) })
//
// A core dump during Use has the registers and the stacks. Code that runs in the process, such as a
// debugger's, can call Use. Hibernation writes all memory to disk; Linux refuses it while there is
// Hidden memory. A snapshot of a virtual machine has all of its memory.
//
// # Several secrets in a page
//
// The limit of locked memory (RLIMIT_MEMLOCK, often 8 MiB) counts whole pages. By default each secret
// has pages of its own: 2,048 secrets of up to 4 KiB fit in 8 MiB. With [Options.Share] the secrets
// of a store share pages, and 262,144 secrets of 32 bytes fit. The price: a Use of one secret makes
// the whole page readable, to a wild pointer or an overread of C code. Go code without unsafe
// cannot read the neighbours, because the capacity of b ends with the secret. Share suits secrets of
// one owner, such as the session keys of a server.
package secret
