//go:build peer_boost

package native

// #cgo CXXFLAGS: -O2 -std=c++17 -DNDEBUG
import "C"

// Names of the peers.
const (
	Hash  = "c++-boost"
	Other = "c++-boost-concurrent"
)
