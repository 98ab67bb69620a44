//go:build peer_absl

package native

// #cgo CXXFLAGS: -O2 -std=c++17 -DNDEBUG
// #cgo pkg-config: absl_btree absl_flat_hash_map
import "C"

// Names of the peers.
const (
	Hash  = "c++-absl"
	Other = "c++-absl-btree"
)
