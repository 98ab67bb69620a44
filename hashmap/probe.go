// Probes: the first step of each search.

package hashmap

import (
	"sync/atomic"
	"unsafe"

	"github.com/freehold-go/freehold/internal/prefetch"
)

// Results of a probe that are not the address of a key.
const (
	absent  = 0 // the map does not have the key
	further = 1 // it may be in another slot or group
)

// probeInGo, as probe, searches the home of hash h. It returns the address and the slot of the
// first key whose tag matches, or absent or further, and the address of the home's tags.
func probeInGo(c *core, h uint64) (key, slot, tags uintptr) {
	return homeOf(&c.layout, c.tableOf(h), h)
}

// homeOf is probeInGo in table t.
func homeOf(l *layout, t table, h uint64) (key, slot, tags uintptr) {
	i, tag := t.home(h), fingerprint(h)
	p := t.tags(i)
	lo, hi := tagWords(p)
	if match := matching(lo, hi, tag); match != 0 {
		at := t.at(l, i, first(match))
		return uintptr(at.key), at.slot, uintptr(p)
	}
	if *t.overflow(i)&overflowBit(tag) != 0 {
		return further, 0, uintptr(p)
	}
	return absent, 0, uintptr(p)
}

// lockedInGo, as probeLocked, is probeInGo in a locked table of a Shared. tags and keys are the
// addresses of the home's tags and of its first key. If key is absent, room is the address of the
// key of a free slot of the home, which an entry takes, or 0 if the home is full.
func lockedInGo(l *layout, tags, keys uintptr, h uint64) (key, slot, room uintptr) {
	p, tag := pointer(tags), fingerprint(h)
	lo, hi := tagWords(p)
	if match := matching(lo, hi, tag); match != 0 {
		slot = first(match)
		return keys + slot*l.keyStep, slot, 0
	}
	if *(*uint8)(unsafe.Add(p, overflowOffset))&overflowBit(tag) != 0 {
		return further, 0, 0
	}
	if free := full(lo, hi) ^ allSlots; free != 0 {
		slot = pick(free, h)
		return absent, slot, keys + slot*l.keyStep
	}
	return absent, 0, 0
}

// roomInGo, as probeRoom, returns the free slot of the home of hash h that an entry takes, or absent
// if the home is full. It returns the address of the home's tags too.
func roomInGo(l *layout, t table, h uint64) (key, slot, tags uintptr) {
	i := t.home(h)
	p := t.tags(i)
	free := t.full(i) ^ allSlots
	if free == 0 {
		return absent, 0, uintptr(p)
	}
	at := t.at(l, i, pick(free, h))
	return uintptr(at.key), at.slot, uintptr(p)
}

// wordInGo, as probeWord, is a whole search for a plain key of 8 bytes. It returns the address of
// the key, its slot and the address of its group's tags; or else absent and the address of the
// home's tags. Then slot is the address of the home's first key, or 0 if the search went further. h
// is the hash of k.
func wordInGo(c *core, k uint64) (key, slot, tags uintptr, h uint64) {
	h = c.hash.word(k)
	t := c.tableOf(h)
	key, slot, tags = homeOf(&c.layout, t, h)
	if key == absent {
		return absent, uintptr(t.at(&c.layout, t.home(h), 0).key), tags, h
	}
	if key > further && *(*uint64)(pointer(key)) == k {
		return key, slot, tags, h
	}
	at, ok := t.search(&c.layout, h, func(at spot) bool { return *(*uint64)(at.key) == k })
	if !ok {
		return absent, 0, tags, h
	}
	return uintptr(at.key), at.slot, uintptr(at.tags), h
}

// textInGo, as probeText, is a whole search for a string key for which isShortText reports true. Its
// results are as for wordInGo, but slot has no meaning if key is absent.
func textInGo(c *core, s string) (key, slot, tags uintptr, h uint64) {
	is := func(at spot) bool { return *hashIn(at.key) == h && c.keyOf(*refIn(at)) == s }
	h = c.hash.bytes(unsafe.Slice(unsafe.StringData(s), len(s)))
	t := c.tableOf(h)
	key, slot, tags = homeOf(&c.layout, t, h)
	if key == absent || key > further && is(spot{pointer(key), pointer(tags), slot}) {
		return key, slot, tags, h
	}
	at, ok := t.search(&c.layout, h, is)
	if !ok {
		return absent, 0, tags, h
	}
	return uintptr(at.key), at.slot, uintptr(at.tags), h
}

// aheadInGo, as loadAhead, begins to load the lines that a probe reads. Callers keep the result, so
// that the compiler keeps the load.
func aheadInGo(c *core, h uint64) byte {
	t := c.tableOf(h)
	return *(*byte)(t.tags(t.home(h)))
}

// peekInGo, as peek, is R1 to R4 of a reader in the home of hash h: see shared.go. It returns the
// same key as probeInGo. If that is an address, version and seen are for R5. If it is absent, peek
// has done R5; if it met a writer, it is further.
func peekInGo(m *sharedTables, h uint64) (key uintptr, version *uint64, seen uint64) {
	at := entryFor(m.dir.Load(), h)
	m.seam.At(readDirectory)
	e := at.Load() // R1
	m.seam.At(readTable)
	if e <= replacedDirectory {
		return further, nil, 0
	}
	t, tag := tableAt(e), fingerprint(h)
	i := t.home(h)
	prefetch.Lines(uintptr(t.preferred(&m.layout, i, h).key), 1)
	version = versionOf(t.tags(i))
	seen = atomic.LoadUint64(version) // R2
	m.seam.At(readVersion)
	if seen&1 != 0 || at.Load() != e { // R3
		return further, nil, 0
	}
	m.seam.At(readEntry)
	lo, hi := loadTags(t.tags(i)) // R4
	m.seam.At(readTags)
	if match := matching(lo, hi, tag); match != 0 {
		return uintptr(t.at(&m.layout, i, first(match)).key), version, seen
	}
	if loadByte(t.overflow(i))&overflowBit(tag) != 0 || atomic.LoadUint64(version) != seen { // R5
		return further, nil, 0
	}
	return absent, nil, 0
}

// peekWordInGo, as peekWord, is peekInGo for a plain key of 8 bytes. It returns the address of a key
// only if that is k. Unless key is absent, h is the hash of k.
func peekWordInGo(m *sharedTables, k uint64) (key uintptr, version *uint64, seen, h uint64) {
	h = m.hash.word(k)
	key, version, seen = peekInGo(m, h)
	if key > further && loadCell[uint64](pointer(key)) != k {
		key, version = further, nil
	}
	return key, version, seen, h
}

// homeInGo, as homeAhead, begins to load the lines of the home of hash h in the table of a
// directory's entry. It returns the addresses of the home's tags and of its first key.
func homeInGo(m *sharedTables, e uintptr, h uint64) (tags, keys uintptr) {
	t := tableAt(e)
	i := t.home(h)
	at := t.preferred(&m.layout, i, h)
	prefetch.Lines(uintptr(at.tags), 1)
	prefetch.Lines(uintptr(at.key), 1)
	return uintptr(at.tags), uintptr(t.at(&m.layout, i, 0).key)
}
