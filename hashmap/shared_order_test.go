//go:build freehold_seams && !race

package hashmap

import (
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/seam"
	"github.com/freehold-go/freehold/internal/test/collect"
)

var readPoints = map[string]seam.Point{
	"directory": readDirectory, "table": readTable, "version": readVersion, "entry": readEntry,
	"tags": readTags, "key": readKey, "value": readValue,
}

// sharedKeys returns n keys from first on. The first bits of their hashes are like's. If other is
// set, they differ from like's.
func sharedKeys[V any](m *Shared[wide, V], first uint64, n int, like wide, other bool) (keys []wide) {
	bits := func(k wide) uint64 { return hashOf(&m.hash, &k) >> (64 - 12) }
	for ; len(keys) < n; first++ {
		if k := wideOf(first); (bits(k) == bits(like)) != other {
			keys = append(keys, k)
		}
	}
	return keys
}

// TestSharedReaderBetweenWrites: at each point of a Get, a writer comes in between.
func TestSharedReaderBetweenWrites(t *testing.T) {
	t.Run("wide", func(t *testing.T) { testSharedReaderBetweenWrites(t, wideOf) })
	t.Run("large", func(t *testing.T) { testSharedReaderBetweenWrites(t, largeOf) })
}

func testSharedReaderBetweenWrites[V words](t *testing.T, valueOf func(n uint64) V) {
	k := wideOf(1)
	put := func(m *Shared[wide, V], keys []wide) {
		for _, k := range keys {
			succeed(m.Put(k, valueOf(k.w[0]+100)))
		}
	}
	moves := func(m *Shared[wide, V]) { // k's table is replaced
		put(m, sharedKeys(m, 1000, groupSlots, k, false))
	}
	for name, write := range map[string]struct {
		do    func(m *Shared[wide, V])
		crowd int    // other entries in k's table before
		after uint64 // what the reader may find instead of 1; 0 is none
	}{
		"replace":            {func(m *Shared[wide, V]) { succeed(m.Put(k, valueOf(2))) }, 0, 2},
		"delete":             {func(m *Shared[wide, V]) { m.Delete(k) }, 0, 0},
		"delete and put":     {func(m *Shared[wide, V]) { m.Delete(k); succeed(m.Put(k, valueOf(2))) }, 0, 2},
		"delete, reuse slot": {func(m *Shared[wide, V]) { m.Delete(k); put(m, sharedKeys(m, 1000, 1, k, false)) }, 0, 0},
		"clear":              {func(m *Shared[wide, V]) { m.Clear() }, 0, 0},
		"clear, reuse slot":  {func(m *Shared[wide, V]) { m.Clear(); put(m, sharedKeys(m, 1000, 1, k, false)) }, 0, 0},
		"move":               {func(m *Shared[wide, V]) { moves(m) }, 0, 1},
		"move and replace":   {func(m *Shared[wide, V]) { moves(m); succeed(m.Put(k, valueOf(2))) }, 0, 2},
		"move and delete":    {func(m *Shared[wide, V]) { moves(m); m.Delete(k) }, 0, 0},
		"move, reuse table":  {func(m *Shared[wide, V]) { moves(m); put(m, sharedKeys(m, 5000, 40, k, true)) }, 0, 1},
		"move, reuse large table": {func(m *Shared[wide, V]) {
			put(m, sharedKeys(m, 1000, 20, k, false))
			put(m, sharedKeys(m, 5000, 100, k, true)) // in the words that were k's, if its table is taken
		}, groupSlots, 1},
		"double directory": {func(m *Shared[wide, V]) {
			m.mu.Lock()
			succeed(m.deepen(depthOf(m.dir.Load()) + 3))
			m.mu.Unlock()
			succeed(m.Put(k, valueOf(2)))
		}, 0, 2},
		"double directory, move, reuse table": {func(m *Shared[wide, V]) {
			m.mu.Lock()
			succeed(m.deepen(depthOf(m.dir.Load()) + 3))
			m.mu.Unlock()
			moves(m)
			put(m, sharedKeys(m, 5000, 40, k, true))
		}, 0, 1},
		"split": {func(m *Shared[wide, V]) { succeed(m.Grow(100_000)); succeed(m.Put(k, valueOf(2))) }, 0, 2},
	} {
		for point, p := range readPoints {
			t.Run(name+" after "+point, func(t *testing.T) {
				m := NewShared[wide, V](alloctest.New(t), nil)
				defer m.Close()
				succeed(m.Put(k, valueOf(1)))
				put(m, sharedKeys(m, 500_000, write.crowd, k, false))
				came := false
				m.seam.Once(p, 1, func() { came = true; write.do(m) })
				v, found := m.Get(k)
				if !came {
					t.Fatal("the reader did not come there")
				}
				if was := found && v == valueOf(1); !was && (found != (write.after != 0) || v != valueOf(write.after)) {
					t.Errorf("Get = %v, %t; want 1 or %d", v, found, write.after)
				}
				if v, found := m.Get(k); found != (write.after != 0) || v != valueOf(write.after) {
					t.Errorf("the next Get = %v, %t; want %d", v, found, write.after)
				}
				m.checkAll()
			})
		}
	}
}

// TestSharedSearchOfAReusedTable: in a search beyond the probe, the key's table is replaced, and used
// again for other keys. The search is then not sure that the map does not have the key.
func TestSharedSearchOfAReusedTable(t *testing.T) {
	for _, point := range []string{"table", "version", "entry", "tags"} {
		m := NewShared[wide, wide](alloctest.New(t), nil)
		k, came := wideOf(1), false
		succeed(m.Put(k, wideOf(1)))
		m.seam.Once(readPoints[point], 1, func() {
			came = true
			for _, other := range append(sharedKeys(m, 1000, groupSlots, k, false), sharedKeys(m, 5000, 40, k, true)...) {
				succeed(m.Put(other, wideOf(2)))
			}
		})
		if s, sure := m.seek(hashOf(&m.hash, &k), &k); !came || sure && s.slot == nil {
			t.Errorf("after %s: the search has missed the key (came there: %t)", point, came)
		}
		m.Close()
	}
}

// TestSharedSearchLoadsOverflowBitsBeforeR5: a table that is reset after a search has loaded the
// overflow bits of a group does not end the search.
func TestSharedSearchLoadsOverflowBitsBeforeR5(t *testing.T) {
	m := NewShared[uint64, uint64](alloctest.New(t), nil)
	defer m.Close()
	m.narrowBy(1<<64 - 1) // all have one home
	for k := range uint64(groupSlots + 1) {
		succeed(m.Put(k, k))
	}
	k := uint64(groupSlots)
	h := hashOf(&m.hash, &k)
	m.seam.Once(readOverflow, 1, func() {
		x, _ := m.enter(h)
		x.reset(x.head().depth) // as if it were used again
		m.leave(x)
	})
	if _, sure := m.seek(h, &k); sure || m.seam.Hook != nil {
		t.Error("the search is sure, or did not come there")
	}
}

// TestSharedReaderOfAReusedSlot: between a reader's loads of a key and its value, the entry is
// deleted, and a writer that has not set its tag yet stores another one in the slot.
func TestSharedReaderOfAReusedSlot(t *testing.T) {
	m := NewShared[uint64, uint64](alloctest.New(t), nil)
	defer m.Close()
	m.narrowBy(1<<64 - 1) // all take the same slot
	succeed(m.Put(1, 1))
	stopped, resume, done := make(chan bool), make(chan bool), make(chan bool)
	m.seam.Once(readKey, 1, func() {
		m.Delete(1)
		m.seam.Once(wroteValue, 1, func() { close(stopped); <-resume })
		go func() { succeed(m.Put(2, 2)); close(done) }()
		<-stopped
	})
	if v, found := m.Get(1); found {
		t.Errorf("Get = %d after the key was deleted", v)
	}
	close(resume)
	<-done
	if v, found := m.Get(2); v != 2 || !found {
		t.Errorf("Get = %d, %t, want 2", v, found)
	}
}

// TestSharedTornValues: a reader that finds a half-written value waits for the writer.
func TestSharedTornValues(t *testing.T) {
	m := NewShared[wide, wide](alloctest.New(t), nil)
	defer m.Close()
	k := wideOf(1)
	succeed(m.Put(k, wideOf(1)))
	for name, odd := range map[string]bool{"before the reader comes": true, "while it reads": false} {
		h := hashOf(&m.hash, &k)
		x, _ := m.enter(h)
		at, _ := m.find(x, h, &k)
		value, version := m.valueIn(at.key), versionOf(at.tags)
		tear := func() {
			*version++
			v := wideOf(1)
			v.w[0] = 9
			storeCell(value, &v)
		}
		if odd {
			tear()
			if s, sure := m.seek(h, &k); s.slot != nil || sure {
				t.Error("a search beyond the probe takes the slot")
			}
		}
		where := make(chan seam.Point, 100)
		m.seam.Hook = func(p seam.Point) {
			if p == readKey && !odd {
				tear()
			}
			if p == readSlow || p == readKey && odd {
				where <- p
			}
		}
		got := make(chan wide)
		go func() { v, _ := m.Get(k); got <- v }()
		if p := <-where; p != readSlow {
			t.Errorf("%s: the reader went on", name)
		}
		m.seam.Hook = nil
		v := wideOf(1)
		storeCell(value, &v)
		*version++
		m.leave(x)
		if v := <-got; v != wideOf(1) {
			t.Errorf("%s: Get = %v", name, v)
		}
	}
}

// TestSharedReaderBetweenSteps: at each step of a writer, readers find all other entries,
// and the writer's in its state before or after.
func TestSharedReaderBetweenSteps(t *testing.T) {
	t.Run("wide", func(t *testing.T) { testSharedReaderBetweenSteps(t, wideOf) })
	t.Run("large", func(t *testing.T) { testSharedReaderBetweenSteps(t, largeOf) })
}

func testSharedReaderBetweenSteps[V words](t *testing.T, valueOf func(n uint64) V) {
	var none V
	for name, point := range map[string]seam.Point{
		"version": raised, "key": wroteKey, "value": wroteValue, "copy": copied, "entry": published, "directory": deepened,
	} {
		t.Run(name, func(t *testing.T) {
			m := NewShared[uint64, V](alloctest.New(t), nil)
			defer m.Close()
			m.setLeastLimits() // directories double more often
			const keys = 3000
			times := 0
			for k := range uint64(keys) {
				m.seam.Hook = func(p seam.Point) {
					if p != point {
						return
					}
					hook := m.seam.Hook
					m.seam.Hook = nil
					times++
					for other := k - min(k, 200); other < k; other++ {
						if v, found := m.Get(other); !found || v != valueOf(other) {
							t.Fatalf("Get(%d) = %v, %t while %d is put", other, v, found, k)
						}
					}
					if v, found := m.Get(k); found || v != none {
						t.Fatalf("Get(%d) = %v, %t before it is put", k, v, found)
					}
					m.seam.Hook = hook
				}
				succeed(m.Put(k, valueOf(k)))
			}
			if times < 2 {
				t.Errorf("writers came there %d times", times)
			}
			m.seam.Hook = nil
		})
	}
}

// eachGet runs a test for each of gets, on a map of its own.
func eachGet[V any](t *testing.T, name string, test func(t *testing.T, m *Shared[string, V], get func(k string) (V, bool))) {
	for call := range gets(NewShared[string, V](alloctest.New(t), nil)) { // which has no memory
		t.Run(call+" "+name, func(t *testing.T) {
			m := NewShared[string, V](alloctest.New(t), nil)
			defer m.Close()
			test(t, m, gets(m)[call])
		})
	}
}

// TestSharedGuardsText: between any steps of a Get, the texts that it reads are deleted or
// replaced, and many others after them, so that all are freed that may be.
func TestSharedGuardsText(t *testing.T) {
	t.Run("string", func(t *testing.T) {
		testSharedGuardsText(t, strings.Repeat("value", 100), "new", "other")
	})
	t.Run("large", func(t *testing.T) { testSharedGuardsText(t, largeOf(1), largeOf(2), largeOf(3)) })
}

func testSharedGuardsText[V comparable](t *testing.T, old, replaced, other V) {
	for point, p := range readPoints {
		for what, narrow := range map[string]uint64{
			"replace": 0, "delete": 0, "delete, reuse slot": 1<<64 - 1, // the other key takes the lowest free slot of all
		} {
			eachGet(t, what+" after "+point, func(t *testing.T, m *Shared[string, V], get func(k string) (V, bool)) {
				del := what != "replace"
				m.narrowBy(narrow)
				succeed(m.Put("key", old))
				m.seam.Once(p, 1, func() {
					if del {
						m.Delete("key")
					} else {
						succeed(m.Put("key", replaced))
					}
					for range 3 * batchTexts {
						succeed(m.Put("other", other))
					}
				})
				v, found := get("key")
				if found && v != old && (del || v != replaced) || !found && !del {
					t.Errorf("it has %.20v, %t", v, found)
				}
				if m.seam.Hook != nil {
					t.Error("the reader did not come there")
				}
				for range 3 * batchTexts { // its guard has left
					succeed(m.Put("other", other))
				}
				if n := m.retired.queue.Len(); n > batchTexts {
					t.Errorf("%d texts wait for nobody", n)
				}
			})
		}
	}
}

// TestSharedTextReaderBetweenMoves: at each point of a Get, the key's table is replaced, and
// used again for other keys.
func TestSharedTextReaderBetweenMoves(t *testing.T) {
	t.Run("string", func(t *testing.T) { testSharedTextReaderBetweenMoves(t, "value", "like", "other") })
	t.Run("large", func(t *testing.T) { testSharedTextReaderBetweenMoves(t, largeOf(1), largeOf(2), largeOf(3)) })
}

func testSharedTextReaderBetweenMoves[V comparable](t *testing.T, value, like, other V) {
	for point, p := range readPoints {
		eachGet(t, point, func(t *testing.T, m *Shared[string, V], get func(k string) (V, bool)) {
			top := func(k string) uint64 { return hashOf(&m.hash, &k) >> (64 - 12) }
			succeed(m.Put("key", value))
			came := false
			m.seam.Once(p, 1, func() {
				came = true
				for i, n := 0, 0; n < groupSlots; i++ { // these have the key's table replaced
					if k := textKey(i); top(k) == top("key") {
						n++
						succeed(m.Put(k, like))
					}
				}
				for i := range 100 { // and these take it
					if k := textKey(i); top(k) != top("key") {
						succeed(m.Put(k, other))
					}
				}
			})
			if v, found := get("key"); v != value || !found || !came {
				t.Errorf("it has %v, %t; the reader came there: %t", v, found, came)
			}
			m.checkAll()
		})
	}
}

// TestSharedWriterLooksAgain: between a writer's look at the directory and its lock, the
// table is replaced, or another writer makes it.
func TestSharedWriterLooksAgain(t *testing.T) {
	for name, between := range map[string]struct {
		keys   int // before
		narrow uint64
		do     func(m *Shared[uint64, uint64])
	}{
		"table replaced": {1000, 0, func(m *Shared[uint64, uint64]) { succeed(m.Grow(100_000)) }},
		"table made":     {0, 1<<64 - 1, func(m *Shared[uint64, uint64]) { succeed(m.Put(1<<40, 1<<40)) }},
	} {
		for call, write := range map[string]func(m *Shared[uint64, uint64]){
			"Put":    func(m *Shared[uint64, uint64]) { succeed(m.Put(1<<41, 1<<41)) },
			"Update": func(m *Shared[uint64, uint64]) { succeed(m.Update(1<<41, func(v *uint64, _ bool) { *v = 1 << 41 })) },
		} {
			t.Run(name+" in "+call, func(t *testing.T) {
				m := NewShared[uint64, uint64](alloctest.New(t), nil)
				defer m.Close()
				m.narrowBy(between.narrow)
				for k := range uint64(between.keys) {
					succeed(m.Put(k, k))
				}
				came := false
				m.seam.Once(lookedUp, 1, func() { came = true; between.do(m) })
				write(m)
				if !came {
					t.Fatal("the writer did not come there")
				}
				m.checkAll()
				n := 0
				for k, v := range m.All() {
					if got, found := m.Get(k); v != k || !found || got != k {
						t.Errorf("Get(%d) = %d, %t, and All has %d", k, got, found, v)
					}
					n++
				}
				if v, found := m.Get(1 << 41); !found || v != 1<<41 || n != max(between.keys, 1)+1 {
					t.Errorf("Get = %d, %t, and there are %d entries", v, found, n)
				}
			})
		}
	}
}

// TestSharedLookUpInAReplacedDirectory: between the loads of a lookUp, the directory is replaced.
func TestSharedLookUpInAReplacedDirectory(t *testing.T) {
	m := NewShared[uint64, uint64](alloctest.New(t), nil)
	defer m.Close()
	succeed(m.Put(1, 1))
	k := uint64(1)
	h := hashOf(&m.hash, &k)
	_, want := m.lookUp(h)
	m.seam.Once(readDirectory, 1, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		succeed(m.deepen(depthOf(m.dir.Load()) + 1))
	})
	if at, e := m.lookUp(h); e != want || at != entryFor(m.dir.Load(), h) {
		t.Errorf("lookUp = %#x, want %#x", e, want)
	}
}

// TestSharedCallsLookAgain: between a call's look at the directory and its lock, the key's table is
// replaced. The call finds the key.
func TestSharedCallsLookAgain(t *testing.T) {
	for name, call := range map[string]func(m *Shared[uint64, uint64], k uint64) bool{
		"Delete": (*Shared[uint64, uint64]).Delete,
		"DeleteIf": func(m *Shared[uint64, uint64], k uint64) bool {
			return m.DeleteIf(k, func(uint64) bool { return true })
		},
		"Get under the lock": func(m *Shared[uint64, uint64], k uint64) bool {
			_, found := m.getLocked(hashOf(&m.hash, &k), &k)
			return found
		},
	} {
		m := NewShared[uint64, uint64](alloctest.New(t), nil)
		for k := range uint64(1000) {
			succeed(m.Put(k, k))
		}
		m.seam.Once(lookedUp, 1, func() { succeed(m.Grow(100_000)) })
		if !call(m, 1) || m.seam.Hook != nil {
			t.Errorf("%s does not find the key, or never looked it up", name)
		}
		m.Close()
	}
}

// TestSharedVersionIsOddInAValue: while the words of a value are written one by one, no
// reader takes them, and a reader that began before finds another version.
func TestSharedVersionIsOddInAValue(t *testing.T) {
	t.Run("two words", func(t *testing.T) { testSharedVersionIsOddInAValue[[2]uintptr](t) })
	t.Run("wide", func(t *testing.T) { testSharedVersionIsOddInAValue[wide](t) })
}

func testSharedVersionIsOddInAValue[V any](t *testing.T) {
	m := NewShared[wide, V](alloctest.New(t), nil)
	defer m.Close()
	var v V
	k := wideOf(1)
	succeed(m.Put(k, v))
	h := hashOf(&m.hash, &k)
	version := func() uint64 {
		_, e := m.lookUp(h)
		tags, _ := homeAhead(&m.sharedTables, e, h)
		return *versionOf(pointer(tags))
	}
	before := version()
	var versions []uint64
	m.seam.Hook = func(p seam.Point) {
		if p == raised || p == wroteValue {
			versions = append(versions, version()&1)
		}
	}
	succeed(m.Put(k, v))
	m.seam.Hook = nil
	if len(versions) != 2 || versions[0] != 1 || versions[1] != 1 {
		t.Errorf("the lowest bits of the version are %v in the steps of a Put, want 1 and 1", versions)
	}
	if after := version(); after <= before || after&1 != 0 {
		t.Errorf("the version is %d after a Put, and was %d", after, before)
	}
}

// TestSharedCollectBetweenSteps: a call that is the last use of its map keeps it until its last
// step.
func TestSharedCollectBetweenSteps(t *testing.T) {
	t.Run("wide", func(t *testing.T) { testSharedCollectBetweenSteps(t, wideOf) })
	t.Run("large", func(t *testing.T) { testSharedCollectBetweenSteps(t, largeOf) })
}

func testSharedCollectBetweenSteps[V words](t *testing.T, valueOf func(n uint64) V) {
	for name, call := range map[string]func(m *Shared[uint64, V]){
		"Get":        func(m *Shared[uint64, V]) { m.Get(1) },
		"Get absent": func(m *Shared[uint64, V]) { m.Get(100) },
		"View":       func(m *Shared[uint64, V]) { m.View(1, func(V) {}) },
		"Put":        func(m *Shared[uint64, V]) { succeed(m.Put(1, valueOf(2))) },
		"Put new":    func(m *Shared[uint64, V]) { succeed(m.Put(100, valueOf(2))) },
		"Update":     func(m *Shared[uint64, V]) { succeed(m.Update(1, func(*V, bool) {})) },
		"Delete":     func(m *Shared[uint64, V]) { m.Delete(1) },
		"Grow":       func(m *Shared[uint64, V]) { succeed(m.Grow(1000)) },
		"All":        func(m *Shared[uint64, V]) { m.All()(func(uint64, V) bool { return true }) },
		"Clear":      func(m *Shared[uint64, V]) { m.Clear() },
	} {
		t.Run(name, func(t *testing.T) {
			heap := freehold.NewHeap(nil)
			defer heap.Close()
			m := NewShared[uint64, V](heap, collects)
			for k := range uint64(40) {
				succeed(m.Put(k, valueOf(k)))
			}
			m.seam.Hook = func(p seam.Point) {
				if collect.All(); heap.Stats().Collected > 0 {
					t.Fatalf("the map is collected at step %d", p)
				}
			}
			call(m)
			collect.Await(t, heap, 1)
		})
	}
}
