//go:build !freehold_debug

package heap

const debugging = false
