//go:build !amd64 || race || freehold_portable || asan || freehold_seams

package hashmap

func probe(c *core, h uint64) (key, slot, tags uintptr) { return probeInGo(c, h) }

func probeWord(c *core, k uint64) (key, slot, tags uintptr, h uint64) { return wordInGo(c, k) }

func probeText(c *core, s string) (key, slot, tags uintptr, h uint64) {
	return textInGo(c, s)
}

func loadAhead(c *core, h uint64) byte { return aheadInGo(c, h) }

func peek(m *sharedTables, h uint64) (key uintptr, version *uint64, seen uint64) {
	return peekInGo(m, h)
}

func peekWord(m *sharedTables, k uint64) (key uintptr, version *uint64, seen, h uint64) {
	return peekWordInGo(m, k)
}

func homeAhead(m *sharedTables, e uintptr, h uint64) (tags, keys uintptr) {
	return homeInGo(m, e, h)
}

func probeLocked(l *layout, tags, keys uintptr, h uint64) (key, slot, room uintptr) {
	return lockedInGo(l, tags, keys, h)
}

func probeRoom(l *layout, t table, h uint64) (key, slot, tags uintptr) { return roomInGo(l, t, h) }
