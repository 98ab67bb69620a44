//go:build freehold_debug

package watch

// debugging has blocks poisoned as FREEHOLD_DEBUG=poison does: see poison.go.
const debugging = true
