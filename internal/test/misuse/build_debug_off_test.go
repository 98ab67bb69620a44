//go:build !freehold_debug

package misuse

const debug = false
