// Package asan tells the address sanitizer, in builds with -asan, which off-heap memory a
// program may access. In other builds it does nothing, and needs no cgo.
package asan
