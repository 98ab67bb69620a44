// Probes: the first step of each search.

package hashmap

// Results of a probe that are not the address of a key.
const (
	absent  = 0 // the map does not have the key
	further = 1 // it may be in another slot or group
)

// probeInGo, as probe, searches the home of hash h. It returns the address and the slot of the
// first key whose tag matches, or absent or further, and the address of the home's tags.
func probeInGo(c *core, h uint64) (key, slot, tags uintptr) {
	t, tag := c.tableOf(h), fingerprint(h)
	i := t.home(h)
	p := t.tags(i)
	lo, hi := tagWords(p)
	if match := matching(lo, hi, tag); match != 0 {
		at := t.at(&c.layout, i, first(match))
		return uintptr(at.key), at.slot, uintptr(p)
	}
	if *t.overflow(i)&overflowBit(tag) != 0 {
		return further, 0, uintptr(p)
	}
	return absent, 0, uintptr(p)
}

// wordInGo, as probeWord, is probeInGo for a plain key of 8 bytes. It returns the address of a key
// only if that is k, and the hash of k.
func wordInGo(c *core, k uint64) (key, slot, tags uintptr, h uint64) {
	h = c.hash.word(k)
	key, slot, tags = probeInGo(c, h)
	if key > further && *(*uint64)(pointer(key)) != k {
		key = further
	}
	return key, slot, tags, h
}

// aheadInGo, as loadAhead, begins to load the lines that a probe reads. Callers keep the result, so
// that the compiler keeps the load.
func aheadInGo(c *core, h uint64) byte {
	t := c.tableOf(h)
	return *(*byte)(t.tags(t.home(h)))
}
