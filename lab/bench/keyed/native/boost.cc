//go:build peer_boost

#include <boost/unordered/concurrent_flat_map.hpp>
#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/version.hpp>

#include "maps.h"

const char *map_version(void) { return "boost " BOOST_LIB_VERSION; }

// Shared is boost's map for several threads.
struct Shared : Calls {
	boost::concurrent_flat_map<uint64_t, uint64_t> m;
	void put(uint64_t key, uint64_t value) override { m.insert_or_assign(key, value); }
	int get(uint64_t key, uint64_t *value) override {
		return m.cvisit(key, [&](auto &entry) { *value = entry.second; });
	}
	void erase(uint64_t key) override { m.erase(key); }
	uint64_t scan() override {
		uint64_t sum = 0;
		m.cvisit_all([&](auto &entry) { sum += entry.first ^ entry.second; });
		return sum;
	}
};

void *map_new(int other, size_t room) {
	if (other) return (Calls *)new Batches<Shared>;
	return (Calls *)new Batches<Hashed<boost::unordered_flat_map<uint64_t, uint64_t>>>(room);
}
