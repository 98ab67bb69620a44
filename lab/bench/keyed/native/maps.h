// The calls of a map of C++ that a benchmark makes, each on a batch of keys, so that the call from
// Go costs nothing.

#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
const char *map_version(void);
void *map_new(int other, size_t room);                                  // the package's hash map, or its other one
void map_put(void *m, const uint64_t *keys, size_t n, uint64_t first);  // values first, first+1 ...
uint64_t map_look(void *m, const uint64_t *keys, size_t n);             // the sum of the values, 1 for none
void map_delete(void *m, const uint64_t *keys, size_t n);
void map_share(void *m, const uint64_t *keys, const uint8_t *choices, size_t n); // 0: get, 1: put, 2: delete
int map_get(void *m, uint64_t key, uint64_t *value);                    // whether it is there
uint64_t map_scan(void *m);                                             // the sum of key ^ value
#ifdef __cplusplus
}

// Calls has them for one kind of map.
struct Calls {
	virtual void put(uint64_t key, uint64_t value) = 0;
	virtual int get(uint64_t key, uint64_t *value) = 0;
	virtual void erase(uint64_t key) = 0;
	virtual void put_all(const uint64_t *keys, size_t n, uint64_t first) = 0;
	virtual uint64_t look_all(const uint64_t *keys, size_t n) = 0;
	virtual void erase_all(const uint64_t *keys, size_t n) = 0;
	virtual void share(const uint64_t *keys, const uint8_t *choices, size_t n) = 0;
	virtual uint64_t scan() = 0;
};

// Batches has loops over One's put, get and erase, which the compiler inlines.
template <class One> struct Batches final : One {
	using One::One;
	void put_all(const uint64_t *keys, size_t n, uint64_t first) override {
		for (size_t i = 0; i < n; i++) One::put(keys[i], first + i);
	}
	uint64_t look_all(const uint64_t *keys, size_t n) override {
		uint64_t sum = 0, value;
		for (size_t i = 0; i < n; i++) sum += One::get(keys[i], &value) ? value : 1;
		return sum;
	}
	void erase_all(const uint64_t *keys, size_t n) override {
		for (size_t i = 0; i < n; i++) One::erase(keys[i]);
	}
	void share(const uint64_t *keys, const uint8_t *choices, size_t n) override {
		uint64_t value;
		for (size_t i = 0; i < n; i++) switch (choices[i]) {
			case 0: One::get(keys[i], &value); break;
			case 1: One::put(keys[i], i); break;
			default: One::erase(keys[i]);
			}
	}
};

// Plain is a map for one thread.
template <class Map> struct Plain : Calls {
	Map m;
	void put(uint64_t key, uint64_t value) override { m[key] = value; }
	int get(uint64_t key, uint64_t *value) override {
		auto at = m.find(key);
		if (at == m.end()) return 0;
		*value = at->second;
		return 1;
	}
	void erase(uint64_t key) override { m.erase(key); }
	uint64_t scan() override {
		uint64_t sum = 0;
		for (auto &entry : m) sum += entry.first ^ entry.second;
		return sum;
	}
};

// Hashed is a Plain with room.
template <class Map> struct Hashed : Plain<Map> {
	Hashed(size_t room) { this->m.reserve(room); }
};

void map_put(void *m, const uint64_t *k, size_t n, uint64_t first) { ((Calls *)m)->put_all(k, n, first); }
uint64_t map_look(void *m, const uint64_t *k, size_t n) { return ((Calls *)m)->look_all(k, n); }
void map_delete(void *m, const uint64_t *k, size_t n) { ((Calls *)m)->erase_all(k, n); }
void map_share(void *m, const uint64_t *k, const uint8_t *choices, size_t n) { ((Calls *)m)->share(k, choices, n); }
int map_get(void *m, uint64_t k, uint64_t *v) { return ((Calls *)m)->get(k, v); }
uint64_t map_scan(void *m) { return ((Calls *)m)->scan(); }
#endif
