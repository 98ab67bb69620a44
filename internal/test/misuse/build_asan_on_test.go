//go:build asan

package misuse

const asan = true
