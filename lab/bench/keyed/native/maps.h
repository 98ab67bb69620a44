// The calls of a map of C++ that a benchmark makes, each on a batch of keys, so that the call from
// Go costs nothing.

#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
void *map_new(void);
void map_put(void *m, const uint64_t *keys, size_t n, uint64_t first);  // values first, first+1 ...
uint64_t map_look(void *m, const uint64_t *keys, size_t n);             // the sum of the values, 1 for none
void map_delete(void *m, const uint64_t *keys, size_t n);
int map_get(void *m, uint64_t key, uint64_t *value);                    // whether it is there
uint64_t map_scan(void *m);                                             // the sum of key ^ value
#ifdef __cplusplus
}

template <class Map> struct calls {
	static void put(void *m, const uint64_t *keys, size_t n, uint64_t first) {
		for (size_t i = 0; i < n; i++) (*(Map *)m)[keys[i]] = first + i;
	}
	static uint64_t look(void *m, const uint64_t *keys, size_t n) {
		uint64_t sum = 0;
		auto end = ((Map *)m)->end();
		for (size_t i = 0; i < n; i++) {
			auto at = ((Map *)m)->find(keys[i]);
			sum += at == end ? 1 : at->second;
		}
		return sum;
	}
	static int get(void *m, uint64_t key, uint64_t *value) {
		auto at = ((Map *)m)->find(key);
		if (at == ((Map *)m)->end()) return 0;
		*value = at->second;
		return 1;
	}
	static void erase(void *m, const uint64_t *keys, size_t n) {
		for (size_t i = 0; i < n; i++) ((Map *)m)->erase(keys[i]);
	}
	static uint64_t scan(void *m) {
		uint64_t sum = 0;
		for (auto &entry : *(Map *)m) sum += entry.first ^ entry.second;
		return sum;
	}
};

#define MAP_OF(Map)                                                                                             \
	void *map_new(void) { return new Map; }                                                                 \
	void map_put(void *m, const uint64_t *k, size_t n, uint64_t first) { calls<Map>::put(m, k, n, first); } \
	uint64_t map_look(void *m, const uint64_t *k, size_t n) { return calls<Map>::look(m, k, n); }           \
	void map_delete(void *m, const uint64_t *k, size_t n) { calls<Map>::erase(m, k, n); }                   \
	int map_get(void *m, uint64_t k, uint64_t *v) { return calls<Map>::get(m, k, v); }                      \
	uint64_t map_scan(void *m) { return calls<Map>::scan(m); }
#endif
