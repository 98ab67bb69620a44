// Package native is maps of C++ from uint64 to uint64, called for a batch of keys at a time:
// boost's unordered_flat_map with the tag peer_boost, abseil's flat_hash_map with peer_absl.
package native
