//go:build cgo && peer_cgo

package alloc

const peer = "cgo-libc"
