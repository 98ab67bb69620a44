//go:build !asan

package asan

// Poison does nothing.
func Poison([]byte) {}

// Unpoison does nothing.
func Unpoison([]byte) {}
