//go:build freehold_debug

package heap

// debugging has blocks poisoned as FREEHOLD_DEBUG=poison does: see poison.go.
const debugging = true
