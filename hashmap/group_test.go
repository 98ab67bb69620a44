package hashmap

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/alloctest"
)

// The lowest bit of matching in each word is right, as are all of full. No bit of matching is of a
// free slot.
func TestMatches(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		var tags [groupSlots]uint8
		for i := range tags {
			if r.IntN(3) > 0 {
				tags[i] = uint8(2 + r.UintN(4)) // few, so that many are equal
			}
		}
		tag := uint8(2 + r.UintN(4))
		lo, hi := tagWords(unsafe.Pointer(&tags))
		match, entries := matching(lo, hi, tag), full(lo, hi)
		seen := [2]bool{}
		for i, has := range tags {
			bit := uint64(1) << (i % 8 * 8) << (i / 8)
			if (entries&bit != 0) != (has != 0) || match&bit != 0 && has == 0 {
				t.Fatalf("slot %d of %x is full: %t, and matches %x: %t", i, tags, entries&bit != 0, tag, match&bit != 0)
			}
			if seen[i/8] = seen[i/8] || match&bit != 0; has == tag && !seen[i/8] {
				t.Fatalf("no slot up to %d of %x matches %x", i, tags, tag)
			} else if match&bit != 0 && has != tag && match&(bit-1)&(eachByte<<(i/8)) == 0 {
				t.Fatalf("slot %d of %x matches %x", i, tags, tag)
			}
			if h := uint64(i) << (quarterShift - 2); first(bit) != uintptr(i) || pick(allSlots, h) != uintptr(i/4*4) || pick(bit, h+1<<quarterShift) != uintptr(i) {
				t.Fatalf("slot %d is %d, or %d or %d of all and of one", i, first(bit), pick(allSlots, h), pick(bit, h+1<<quarterShift))
			}
		}
		if entries&^uint64(allSlots) != 0 {
			t.Fatalf("full %x", entries)
		}
	}
}

// probe and probeRoom have the same results in assembly and in Go.
func TestProbe(t *testing.T) {
	m := newCrafted(t)
	r := rand.New(rand.NewPCG(1, 2))
	check := func(h uint64) {
		key, slot, tags := probe(&m.core, h)
		wantKey, wantSlot, wantTags := probeInGo(&m.core, h)
		if key > further && *tagIn(pointer(tags), slot) == fingerprint(h) && key-wantKey == (slot-wantSlot)*m.keyStep {
			wantKey, wantSlot = key, slot // another one with the tag
		}
		if key != wantKey || key > further && slot != wantSlot || tags != wantTags {
			t.Fatalf("hash %x: %x, %d, %x; want %x, %d, %x", h, key, slot, tags, wantKey, wantSlot, wantTags)
		}
		key, slot, tags = probeRoom(&m.layout, m.tableOf(h), h)
		wantKey, wantSlot, wantTags = roomInGo(&m.layout, m.tableOf(h), h)
		if key != wantKey || key != absent && slot != wantSlot || tags != wantTags {
			t.Fatalf("hash %x: room at %x, %d, %x; want %x, %d, %x", h, key, slot, tags, wantKey, wantSlot, wantTags)
		}
	}
	check(0)
	for n := range 20_000 {
		h := r.Uint64() &^ (r.Uint64N(4) << 62) // some tables are fuller
		putCrafted(t, m, h)
		if n%16 == 0 {
			check(h)
			check(r.Uint64())
			check(h ^ 1<<tagShift)
		}
	}
}

// probeWord has the same results in assembly and in Go, in groups that keys have passed too.
func TestProbeWord(t *testing.T) {
	m := New[uint64, uint64](alloctest.New(t), nil)
	defer m.Close()
	far := 0
	check := func(k uint64) {
		key, slot, tags, h := probeWord(&m.core, k)
		wantKey, wantSlot, wantTags, wantHash := wordInGo(&m.core, k)
		if key != wantKey || slot != wantSlot || tags != wantTags || h != wantHash {
			t.Fatalf("key %d: %x, %d, %x, hash %x; want %x, %d, %x, %x", k, key, slot, tags, h, wantKey, wantSlot, wantTags, wantHash)
		}
		if tb := m.tableOf(h); key != absent && tb.groupOf(pointer(tags)) != tb.home(h) {
			far++
		}
	}
	for k := range uint64(20_000) {
		check(k)
		succeed(m.Put(k, k))
		check(k)
		check(k / 2)
		if k%3 == 0 {
			m.Delete(k / 2)
			check(k / 2)
		}
	}
	if far < 100 {
		t.Errorf("%d keys in another group", far)
	}
	m.eachTable(func(tb table) {
		for i := range tb.groups() {
			*tb.overflow(i) = 0xFF
		}
	})
	for k := range uint64(20_000) { // searches that read a whole table end
		check(k)
	}
}

// probeText has the same results in assembly and in Go, also for keys with equal hashes and tags.
func TestProbeText(t *testing.T) {
	const few = 0x03FFFFFF_00FFFFFF // leaves bits of the directory and of the group
	for _, narrow := range []uint64{0, few} {
		t.Run(fmt.Sprintf("pairs,narrow=%#x", narrow), func(t *testing.T) {
			testProbeText(t, narrow, func(k string) string { return strings.Repeat(k, len(k)/2*len(k)) }) // some are long
		})
		t.Run(fmt.Sprintf("heads,narrow=%#x", narrow), func(t *testing.T) {
			testProbeText(t, narrow, func(k string) [3]int { return [3]int{len(k)} })
		})
	}
}

func testProbeText[V comparable](t *testing.T, narrow uint64, value func(k string) V) {
	m := New[string, V](alloctest.New(t), nil)
	defer m.Close()
	m.narrowBy(narrow)
	var seen struct{ found, absent, far int }
	check := func(k string) {
		key, slot, tags, h := probeText(&m.core, k)
		wantKey, wantSlot, wantTags, wantHash := textInGo(&m.core, k)
		if key != wantKey || key != absent && slot != wantSlot || tags != wantTags || h != wantHash {
			t.Fatalf("key %q: %x, %d, %x, hash %x; want %x, %d, %x, %x", k, key, slot, tags, h, wantKey, wantSlot, wantTags, wantHash)
		}
		switch tb := m.tableOf(h); {
		case key == absent:
			seen.absent++
		case tb.groupOf(pointer(tags)) != tb.home(h):
			seen.far++
		default:
			seen.found++
		}
		if v, ok := m.Get(k); ok != (key != absent) || ok && v != value(k) {
			t.Fatalf("key %q: %t, %v", k, ok, v)
		}
	}
	name := func(i int) string { // keys of a length that differ in the last bytes, or in the first
		if n := 8 + i/2%25; i%2 == 0 {
			return fmt.Sprintf("%0*d", n, i)
		} else {
			return fmt.Sprintf("%-*d", n, i)
		}
	}
	const n = 10_000
	for i := range n {
		check(name(i))
		succeed(m.Put(name(i), value(name(i))))
		check(name(i))
		check(name(i / 2))
		if i%3 == 0 {
			m.Delete(name(i / 2))
			check(name(i / 2))
		}
	}
	if seen.found < n || seen.absent < n || seen.far < 100 {
		t.Errorf("seen: %+v", seen)
	}
	m.eachTable(func(tb table) {
		for i := range tb.groups() {
			*tb.overflow(i) = 0xFF
		}
	})
	for i := range n { // searches that read a whole table end
		check(name(i))
	}
}

// The leaves of a Shared have the same results in assembly and in Go. A key that peekWord does not
// find is not in the map.
func TestPeekWord(t *testing.T) {
	m := NewShared[uint64, uint64](alloctest.New(t), nil)
	defer m.Close()
	for n := range uint64(20_000) {
		succeed(m.Put(n*3, n))
		for _, k := range []uint64{n * 2, n*2 + 1, n * 3} {
			key, version, seen, h := peekWord(&m.sharedTables, k)
			near, nearVersion, _ := peek(&m.sharedTables, m.hash.word(k))
			if key <= further && version != nil || near <= further && nearVersion != nil { // see pointer
				t.Fatalf("key %d: a version without an address of a key", k)
			}
			wantKey, wantVersion, wantSeen, wantHash := peekWordInGo(&m.sharedTables, k)
			switch {
			case key == absent && k%3 == 0: // it is at most n * 3
				t.Fatalf("key %d is absent", k)
			case key == absent && (wantKey == absent || wantKey == further): // Go's looks at one slot
			case key <= further && key == wantKey && h == wantHash:
			case key <= further || *(*uint64)(pointer(key)) != k || h != wantHash:
				t.Fatalf("key %d: %x, hash %x; want %x, %x", k, key, h, wantKey, wantHash)
			case wantKey > further && (key != wantKey || version != wantVersion || seen != wantSeen):
				t.Fatalf("key %d: %x, version %d; want %x, %d", k, key, seen, wantKey, wantSeen)
			}
			_, e := m.lookUp(wantHash)
			if e == 0 {
				continue
			}
			tags, keys := homeAhead(&m.sharedTables, e, wantHash)
			if wantTags, wantKeys := homeInGo(&m.sharedTables, e, wantHash); tags != wantTags || keys != wantKeys {
				t.Fatalf("key %d: its home is at %x, %x; want %x, %x", k, tags, keys, wantTags, wantKeys)
			}
			check := func(leaf string, key, slot, other, wantKey, wantSlot, wantOther uintptr) {
				if key != wantKey || other != wantOther || max(key, other) > further && slot != wantSlot {
					t.Fatalf("key %d: %s is %x, %d, %x; want %x, %d, %x", k, leaf, key, slot, other, wantKey, wantSlot, wantOther)
				}
			}
			key, slot, room := probeLocked(&m.layout, tags, keys, wantHash)
			wantKey, wantSlot, wantRoom := lockedInGo(&m.layout, tags, keys, wantHash)
			if key > further && wantKey > further && *tagIn(pointer(tags), slot) == fingerprint(wantHash) {
				key, slot = wantKey, wantSlot // of several candidates, each takes another first
			}
			check("probeLocked", key, slot, room, wantKey, wantSlot, wantRoom)
			key, slot, tags = probeRoom(&m.layout, tableAt(e), wantHash)
			wantKey, wantSlot, wantTags := roomInGo(&m.layout, tableAt(e), wantHash)
			check("probeRoom", key, min(slot, key), tags, wantKey, min(wantSlot, wantKey), wantTags)
		}
	}
}

func TestFingerprint(t *testing.T) {
	for h, want := range map[uint64]uint8{0: 2, 1 << tagShift: 2, 3 << tagShift: 3, 1<<64 - 1: 0xFF, 0x5A << tagShift: 0x5A} {
		if tag := fingerprint(h); tag != want || overflowBit(tag) != 1<<(want%8) {
			t.Errorf("the tag of %x is %x, with the overflow bit %x", h, tag, overflowBit(tag))
		}
	}
}

// Classes grow, up to the last two, which no map reaches.
func TestClasses(t *testing.T) {
	for i, c := range classes[:60] {
		if c.slots%lineBytes != 0 || c.slots < headBytes*c.groups || c.slots >= headBytes*c.groups+lineBytes || i > 0 && c.groups <= classes[i-1].groups {
			t.Errorf("class %d is %+v, after %+v", i, c, classes[max(i, 1)-1])
		}
		if next := nextClass(uintptr(i)); i < 59 && (classes[next].groups <= c.groups || classes[next].groups > 2*c.groups) {
			t.Errorf("%d groups grow to %d", c.groups, classes[next].groups)
		}
	}
}

func TestLayouts(t *testing.T) {
	type sizes struct{ keyStep, valueStep, keys, groupBytes, groups, leastGroups uintptr }
	of := func(l layout) sizes {
		return sizes{l.keyStep, l.valueStep, l.keys, l.groupBytes, uintptr(classes[l.limits[0]].groups), uintptr(classes[l.limits[7]].groups)}
	}
	for _, test := range []struct {
		what      string
		got, want sizes
	}{
		{"two words", of(layoutOf[uint64, uint64]()), sizes{16, 16, 8, 256, 60, 32}},
		{"one word", of(layoutOf[uint32, uint32]()), sizes{8, 8, 4, 128, 112, 60}},
		{"a set", of(layoutOf[uint64, struct{}]()), sizes{8, 8, 0, 128, 112, 60}},
		{"nothing", of(layoutOf[struct{}, struct{}]()), sizes{0, 0, 0, 16, 120, 72}},
		{"padding", of(layoutOf[uint64, uint8]()), sizes{8, 1, 16, 144, 96, 56}},
		{"padding in front", of(layoutOf[uint8, [0]uint64]()), sizes{1, 0, 0, 16, 120, 72}},
		{"large keys", of(layoutOf[[4000]byte, uint64]()), sizes{4008, 4008, 8, 64128, 4, 3}},
	} {
		if test.got != test.want {
			t.Errorf("%s: %+v, want %+v", test.what, test.got, test.want)
		}
	}
}

func TestSlotsAreInTheirGroup(t *testing.T) {
	testSlots[uint64, uint64](t)
	testSlots[uint8, uint64](t)
	testSlots[uint64, uint8](t)
	testSlots[uint64, struct{}](t)
	testSlots[uint8, [0]uint64](t)
	testSlots[struct{}, uint64](t)
	testSlots[struct{}, struct{}](t)
}

// testSlots: each key and value has bytes of its own in its group. One without a size has a byte in
// it, since the compiler loads it to check the pointer.
func testSlots[K comparable, V any](t *testing.T) {
	l := layoutOf[K, V]()
	group := unsafe.Pointer(unsafe.SliceData(make([]uint64, l.groupBytes/8)))
	used := map[uintptr]bool{}
	for slot := range uintptr(groupSlots) {
		at := spot{key: unsafe.Add(group, l.keys+slot*l.keyStep), slot: slot}
		for p, n := range map[uintptr]uintptr{uintptr(at.key): l.keyBytes, uintptr(l.value(at)): l.valueBytes} {
			if p < uintptr(group) || p+max(n, 1) > uintptr(group)+l.groupBytes {
				t.Errorf("%T: slot %d is not in its group", *new(map[K]V), slot)
			}
			for i := range n {
				if used[p+i] {
					t.Errorf("%T: slot %d has bytes of another", *new(map[K]V), slot)
				}
				used[p+i] = true
			}
		}
		if unsafe.Pointer(valueIn[K, V](at.key, slot)) != l.value(at) {
			t.Errorf("%T: two addresses of value %d", *new(map[K]V), slot)
		}
	}
}
