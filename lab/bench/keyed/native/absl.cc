//go:build peer_absl

#include "absl/base/config.h"
#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"

#include "maps.h"

#define TEXT(x) #x
#define TEXT_OF(x) TEXT(x)

const char *map_version(void) { return "abseil " TEXT_OF(ABSL_LTS_RELEASE_VERSION); }

void *map_new(int other, size_t room) {
	if (other) return (Calls *)new Batches<Plain<absl::btree_map<uint64_t, uint64_t>>>;
	return (Calls *)new Batches<Hashed<absl::flat_hash_map<uint64_t, uint64_t>>>(room);
}
