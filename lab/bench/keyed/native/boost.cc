//go:build peer_boost

#include <boost/unordered/unordered_flat_map.hpp>

#include "maps.h"

typedef boost::unordered_flat_map<uint64_t, uint64_t> Map;
MAP_OF(Map)
