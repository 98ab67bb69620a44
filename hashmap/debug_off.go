//go:build !freehold_debug

package hashmap

const debug = false
