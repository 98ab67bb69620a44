//go:build peer_boost

package native

// #cgo CXXFLAGS: -O2 -std=c++17 -DNDEBUG
import "C"

const Name = "c++-boost" // of the peer
