//go:build !amd64 || race || freehold_portable || asan

package hashmap

func probe(c *core, h uint64) (key, slot, tags uintptr) { return probeInGo(c, h) }

func probeWord(c *core, k uint64) (key, slot, tags uintptr, h uint64) { return wordInGo(c, k) }

func loadAhead(c *core, h uint64) byte { return aheadInGo(c, h) }
