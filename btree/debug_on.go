//go:build freehold_debug

package btree

// debug is true in builds with the tag freehold_debug: splits, joins and Close check
// the tree.
const debug = true
