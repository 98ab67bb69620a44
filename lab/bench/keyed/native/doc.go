// Package native is maps of C++ from uint64 to uint64, called for a batch of keys at a time. With
// the tag peer_boost they are boost's unordered_flat_map and concurrent_flat_map, with peer_absl
// abseil's flat_hash_map and btree_map.
package native
