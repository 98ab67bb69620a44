// Probes in assembly: see probe_amd64.s.

//go:build !race && !freehold_portable && !asan && !freehold_seams

package hashmap

import "github.com/freehold-go/freehold/internal/pin"

// entries returns the addresses of the functions in probe_amd64.s.
func entries() *uintptr

type probes struct {
	probe    func(c *core, h uint64) (key, slot, tags uintptr)
	word     func(c *core, k uint64) (key, slot, tags uintptr, h uint64)
	text     func(c *core, s string) (key, slot, tags uintptr, h uint64)
	ahead    func(c *core, h uint64) byte
	peek     func(m *sharedTables, h uint64) (key uintptr, version *uint64, seen uint64)
	peekWord func(m *sharedTables, k uint64) (key uintptr, version *uint64, seen, h uint64)
	home     func(m *sharedTables, e uintptr, h uint64) (tags, keys uintptr)
	locked   func(l *layout, tags, keys uintptr, h uint64) (key, slot, room uintptr)
	room     func(l *layout, t table, h uint64) (key, slot, tags uintptr)
}

var assembly = pin.Assembly(probes{probeInGo, wordInGo, textInGo, aheadInGo, peekInGo, peekWordInGo, homeInGo, lockedInGo, roomInGo}, entries())

func probe(c *core, h uint64) (key, slot, tags uintptr) { return assembly.probe(c, h) }

func probeWord(c *core, k uint64) (key, slot, tags uintptr, h uint64) { return assembly.word(c, k) }

func probeText(c *core, s string) (key, slot, tags uintptr, h uint64) {
	return assembly.text(c, s)
}

func loadAhead(c *core, h uint64) byte { return assembly.ahead(c, h) }

func peek(m *sharedTables, h uint64) (key uintptr, version *uint64, seen uint64) {
	return assembly.peek(m, h)
}

func peekWord(m *sharedTables, k uint64) (key uintptr, version *uint64, seen, h uint64) {
	return assembly.peekWord(m, k)
}

func homeAhead(m *sharedTables, e uintptr, h uint64) (tags, keys uintptr) {
	return assembly.home(m, e, h)
}

func probeLocked(l *layout, tags, keys uintptr, h uint64) (key, slot, room uintptr) {
	return assembly.locked(l, tags, keys, h)
}

func probeRoom(l *layout, t table, h uint64) (key, slot, tags uintptr) {
	return assembly.room(l, t, h)
}
