//go:build peer_absl

#include "absl/container/flat_hash_map.h"

#include "maps.h"

typedef absl::flat_hash_map<uint64_t, uint64_t> Map;
MAP_OF(Map)
