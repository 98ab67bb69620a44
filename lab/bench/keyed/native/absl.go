//go:build peer_absl

package native

// #cgo CXXFLAGS: -O2 -std=c++17 -DNDEBUG
// #cgo pkg-config: absl_flat_hash_map
import "C"

const Name = "c++-absl" // of the peer
