// Debug builds: a map checks its invariants whenever a table has grown.

//go:build freehold_debug

package hashmap

const debug = true
