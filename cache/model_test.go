package cache

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// A model is a cache beside a Go map with the same entries. OnEvict tells the model what to drop.
type model struct {
	t       testing.TB
	c       *Cache
	parent  *freehold.Limit
	clock   *fakeTime
	want    map[string]modelEntry
	most    int   // the MaxBytes of New
	scale   int   // of values
	fails   bool  // the parent may refuse, or kept entries leave no room
	keeps   bool  // some entries are Kept
	expiry  bool  // Options.Expiry is expiryOfModel
	counted Stats // the counters that the calls should have led to

	lost    int               // entries that left the disk since the cache was made
	reads   uint64            // entries that earlier caches read on disk
	highest map[string]uint64 // version of each key that was ever seen
	written map[string]bool   // since then
}

type modelEntry struct {
	value   string
	flags   uint64
	expires time.Duration // on the clock; 0 is never
	inTicks bool          // expires is a tick
	kept    bool
}

func newModel(t testing.TB, parent freehold.Allocator, o Options) *model {
	m := &model{
		t: t, want: map[string]modelEntry{}, parent: freehold.NewLimit(parent, o.MaxBytes), scale: 1 + o.MaxBytes/(1<<20),
		most: o.MaxBytes, highest: map[string]uint64{}, written: map[string]bool{},
	}
	if o.Disk != nil {
		m.parent = freehold.NewLimit(parent, o.MaxBytes+64<<20) // buffers
		m.scale *= 100
	}
	o.OnEvict = m.evicted
	if m.expiry = o.Expiry != nil; m.expiry {
		o.Expiry = expiryOfModel
	}
	m.open(o)
	m.clock.now = time.Second
	return m
}

func (m *model) open(o Options) {
	m.c = New(m.parent, &o)
	m.clock = m.c.fake()
	m.counted, m.lost = Stats{}, 0
}

// found returns whether key should have an entry. If a call has not found it, it may have left the
// disk.
func (m *model) found(key string, found bool) bool {
	if m.has(key) && !found && m.c.disk != nil {
		m.lost++
		delete(m.want, key)
	}
	return m.has(key)
}

// expiryOfModel keeps the TTL, makes it longer or shorter, or has the entry expire at once.
func expiryOfModel(key []byte, e Entry, read bool) time.Duration {
	n := time.Duration(len(key)+len(e.Value)) % 7 * time.Second
	switch {
	case read && e.TTL > 100*time.Second:
		return e.TTL / 2
	case read && n == 0:
		return e.TTL + 10*time.Second
	case n == 6*time.Second:
		return -1
	case !read && n < 4*time.Second:
		return n
	}
	return e.TTL
}

// left returns the TTL that the entry of key has left.
func (m *model) left(key string) (ttl time.Duration) {
	if w := m.want[key]; m.has(key) && w.expires != 0 {
		ttl = w.expires - m.clock.now
		switch {
		case w.inTicks && ttl%time.Second == 0:
			ttl-- // else it would be stored as seconds
		case !w.inTicks:
			ttl = max(ttl.Truncate(time.Second), 1)
		}
	}
	return ttl
}

// asked returns w with the TTL of expiryOfModel, for an entry of key whose TTL was left.
func (m *model) asked(key string, w modelEntry, left time.Duration, read bool) modelEntry {
	ttl := expiryOfModel([]byte(key), Entry{Value: []byte(w.value), TTL: left}, read)
	switch {
	case ttl < 0:
		w.expires, w.inTicks = m.clock.now, false
	case ttl != left || ttl == 0:
		w.expires, w.inTicks = m.expires(ttl)
	}
	return w
}

// evicted is OnEvict. It checks that each entry is dropped once, with its value.
func (m *model) evicted(key []byte, e Entry, why Reason) {
	want, ok := m.want[string(key)]
	if !ok || want.value != string(e.Value) || want.flags != e.Flags || want.expires == 0 && e.TTL != 0 {
		m.t.Fatalf("%q dropped with %d bytes, %+v (%v): the model has it: %t, %d bytes", key, len(e.Value), e, why, ok, len(want.value))
	}
	if want.kept && why == Room {
		m.t.Fatalf("%q is evicted", key)
	}
	if isOver := want.isOver(m.clock.now); isOver != (why == Expired) {
		m.t.Fatalf("%q dropped: %v, but it has expired: %t", key, why, isOver)
	}
	*m.counter(why)++
	delete(m.want, string(key))
}

// counter returns the counter of a reason.
func (m *model) counter(why Reason) *uint64 {
	return [...]*uint64{Room: &m.counted.Evicted, Expired: &m.counted.Expired, Shrunk: &m.counted.Shrunk}[why]
}

// read counts a read of key as a hit or a miss. It gives the entry the TTL of a read, unless the
// entry stayed on disk.
func (m *model) read(key string, found bool) {
	if !found {
		m.counted.Misses++
		return
	}
	m.counted.Hits++
	w := m.want[key]
	if !m.has(key) || w.expires == 0 || m.c.disk != nil && !m.c.isInMemory(key) {
		return
	}
	if m.expiry {
		w = m.asked(key, w, m.left(key), true)
	} else if m.c.options.Sliding {
		w.expires, w.inTicks = m.expires(m.c.options.TTL)
	}
	m.want[key] = w
}

func (e modelEntry) isOver(now time.Duration) bool { return e.expires != 0 && now >= e.expires }

// expires returns when an entry that is stored now expires, and whether that is a tick.
func (m *model) expires(ttl time.Duration) (at time.Duration, inTicks bool) {
	if ttl == 0 {
		return 0, false
	}
	if at = m.clock.now + ttl; ttl > time.Minute || ttl%time.Second == 0 || ttl == 1 {
		return (at + time.Second - 1).Truncate(time.Second), false
	}
	tick := (at*1024 + time.Second - 1) / time.Second
	return (tick*time.Second + 1023) / 1024, true
}

// run reads prog as a program: each four bytes are an operation and its arguments.
func (m *model) run(prog []byte) {
	for n := 0; len(prog) >= 4; prog, n = prog[4:], n+1 {
		m.step(prog[0], int(prog[1])|int(prog[2])<<8, int(prog[3]))
		if n%512 == 0 {
			m.verify()
		}
	}
	m.verify()
}

func (m *model) step(op byte, arg, more int) {
	key := fmt.Sprint("key ", arg&(arg>>3)) // some more often than others
	e := Entry{Value: bytes.Repeat([]byte(key), more%16*m.scale), Flags: uint64(more%3) << (more % 40)}
	if more%8 == 0 {
		e.TTL = time.Duration(1+arg%300) * time.Second / time.Duration(1+arg%7)
	}
	e.Kept = m.keeps && more%4 == 1
	if more == 255 {
		e.Value = make([]byte, arg%(m.c.MaxEntry()-len(key)))
	}
	switch op % 16 {
	default:
		if m.c.disk != nil && !m.c.isInMemory(key) {
			delete(m.want, key) // Put does not read the disk: Expiry gets no TTL
		}
		m.stored(key, e, true, must(true, m.failed(key, true, m.c.putFor(key, e))), false)
	case 8, 9:
		if got := m.c.Delete([]byte(key)); got != m.found(key, got) {
			m.t.Fatalf("Delete(%q) = %t", key, got)
		}
		delete(m.want, key)
	case 10:
		done, err := m.c.Add([]byte(key), e)
		had := m.found(key, !done)
		m.stored(key, e, done, done == !had || err != nil && m.failed(key, false, err) == nil, false)
	case 11:
		done, err := m.c.Replace([]byte(key), e)
		had := m.found(key, done)
		m.stored(key, e, done, done == had || err != nil && m.failed(key, false, err) == nil, false)
	case 12:
		m.update(key, e, more)
	case 13:
		got := m.c.Touch([]byte(key), e.TTL)
		if got != m.found(key, got) {
			m.t.Fatalf("Touch(%q) = %t", key, got)
		}
		if got {
			w := m.want[key]
			w.expires, w.inTicks = m.expires(e.TTL)
			m.want[key] = w
		}
	case 14:
		m.clock.add(time.Duration(more) * 100 * time.Millisecond)
		if arg%2 == 0 {
			m.sweep()
		}
	case 15:
		m.rare(arg, more)
	}
	m.get(key)
}

// putFor is Put, for failed.
func (c *Cache) putFor(key string, e Entry) error {
	_, err := c.Put([]byte(key), e)
	return err
}

// failed checks an error, which may be the parent's. If clears is set, the key then has no entry.
func (m *model) failed(key string, clears bool, err error) error {
	if err == nil {
		return nil
	}
	if !m.fails || !errors.Is(err, freehold.ErrOutOfMemory) {
		m.t.Fatalf("%q is refused: %v", key, err)
	}
	if clears {
		delete(m.want, key)
	}
	return nil
}

func (m *model) has(key string) bool {
	e, ok := m.want[key]
	return ok && !e.isOver(m.clock.now)
}

// stored notes that e was stored, if done is set. keeps says that its TTL is its own even if it is
// 0.
func (m *model) stored(key string, e Entry, done, right, keeps bool) {
	if !right {
		m.t.Fatalf("%q: stored is %t", key, done)
	}
	if done {
		if e.TTL == 0 && !keeps {
			e.TTL = m.c.options.TTL
		}
		w, left := modelEntry{value: string(e.Value), flags: e.Flags, kept: e.Kept || m.c.options.KeepAll}, m.left(key)
		w.expires, w.inTicks = m.expires(e.TTL)
		if m.expiry && e.TTL == 0 && !keeps {
			if left > 0 {
				w.expires, w.inTicks = m.want[key].expires, m.want[key].inTicks
			}
			w = m.asked(key, w, left, false)
		}
		if delete(m.want, key); !w.isOver(m.clock.now) {
			m.counted.Sets++
			m.want[key], m.written[key] = w, true
		}
	}
	_, ok := m.c.Get(nil, []byte(key))
	m.found(key, ok)
	if m.read(key, ok); !ok && m.fails {
		delete(m.want, key)
	}
}

func (m *model) update(key string, e Entry, more int) {
	had, left := false, m.left(key)
	change, before := Change(more%5), uint64(0)
	version, err := m.c.Update([]byte(key), func(old *Entry, found bool) Change {
		if had = m.found(key, found); found != had || string(old.Value) != m.value(key) {
			m.t.Fatalf("Update(%q) finds %t, %d bytes", key, found, len(old.Value))
		}
		before = old.Version
		*old = e
		return change
	})
	m.failed(key, false, err)
	if err == nil && change != Store && change != Remove && version != before && m.has(key) {
		m.t.Fatalf("Update(%q) to %d gives version %d after %d", key, change, version, before)
	}
	switch {
	case change == Store && err == nil:
		m.stored(key, e, true, true, had && left == e.TTL)
	case change == Remove:
		delete(m.want, key)
	case change == Touch && had:
		w := m.want[key]
		w.expires, w.inTicks = m.expires(e.TTL)
		m.want[key] = w
	case change == Mark && had && err == nil:
		w := m.want[key]
		w.flags = e.Flags
		m.want[key] = w
	}
}

func (m *model) value(key string) string {
	if m.has(key) {
		return m.want[key].value
	}
	return ""
}

func (m *model) rare(arg, more int) {
	switch {
	case arg%1024 == 0:
		m.c.Clear()
		clear(m.want)
	case m.c.disk != nil && arg%64 == 3:
		m.restart(arg%256 == 3)
	case arg%16 < 2:
		m.c.Resize(max(m.most/128*(16+more%113), MinBytes))
	default:
		m.verify()
	}
}

// sweep checks that a sweep drops the entries that expired before this second, and none for room.
func (m *model) sweep() {
	before := m.counted
	m.c.sweep()
	for key, e := range m.want {
		if !e.isOver(m.clock.now.Truncate(time.Second)) {
			continue
		}
		if m.c.disk != nil && m.c.found([]byte(key)).it == nil { // it expires on disk
			delete(m.want, key)
		} else {
			m.t.Fatalf("%q stays at %v, and has expired at %v", key, m.clock.now, e.expires)
		}
	}
	if m.counted.Evicted != before.Evicted || m.counted.Shrunk != before.Shrunk {
		m.t.Fatalf("a sweep drops entries for room: %+v, before %+v", m.counted, before)
	}
}

func (m *model) get(key string) {
	had := m.has(key)
	found := m.c.View([]byte(key), func(e Entry) {
		m.read(key, true)
		want := m.want[key]
		if string(e.Value) != want.value || e.Flags != want.flags || e.Kept != want.kept {
			m.t.Fatalf("View(%q) has %d bytes, flags %x; want %d, %x", key, len(e.Value), e.Flags, len(want.value), want.flags)
		}
		left := m.left(key)
		if want.expires != 0 && left == 0 {
			left = -1 // it has expired by this read
		}
		if e.TTL != left {
			m.t.Fatalf("View(%q) has TTL %v, want %v at %v", key, e.TTL, left, m.clock.now)
		}
		if last := m.highest[key]; e.Version < last || e.Version == last && m.written[key] {
			m.t.Fatalf("View(%q) has version %d after %d, which it had before %t", key, e.Version, last, m.written[key])
		}
		m.highest[key], m.written[key] = e.Version, false
	})
	if !found {
		m.read(key, false)
		had = m.found(key, false)
	}
	if found != had {
		m.t.Fatalf("View(%q) = %t", key, found)
	}
}

// verify looks at all entries, and at the bound.
func (m *model) verify() {
	m.t.Helper()
	m.c.check()
	for key := range m.want {
		m.get(key)
	}
	n := 0
	for key, e := range m.c.All() {
		n++
		if string(e.Value) != m.value(string(key)) {
			m.t.Fatalf("All has %q with %d bytes", key, len(e.Value))
		}
	}
	live := 0
	for key := range m.want {
		if m.has(key) {
			live++
		}
	}
	st := m.c.Stats()
	buffers := 0
	if m.c.disk != nil {
		n, buffers = live, st.Disk.BufferBytes
		if m.lost > int(st.Disk.Evicted+st.Disk.Errors) || st.Disk.Errors > 0 {
			m.t.Fatalf("%d entries are lost: %+v", m.lost, st)
		}
		if st.Disk.Off != nil {
			m.t.Fatal(st.Disk.Off)
		}
		st.Len += live
	}
	if n != live {
		m.t.Fatalf("All has %d entries, want %d", n, live)
	}
	if st.Len < live || m.c.disk == nil && st.Len > st.Slots || st.Slots*8 > st.Index {
		m.t.Fatalf("%d entries in an index of %d slots, %d bytes; want %d", st.Len, st.Slots, st.Index, live)
	}
	got := Stats{Hits: st.Hits, Misses: st.Misses, Sets: st.Sets, Evicted: st.Evicted, Expired: st.Expired, Shrunk: st.Shrunk}
	if m.fails {
		got.Sets = m.counted.Sets
	}
	if got != m.counted {
		m.t.Fatalf("%+v, want %+v", got, m.counted)
	}
	if st.Reserved > st.MaxBytes || m.parent.Used() != st.Reserved+buffers {
		m.t.Fatalf("%d bytes of the parent, %d counted, of at most %d", m.parent.Used(), st.Reserved, st.MaxBytes)
	}
}

func program(seed uint64, steps int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	prog := make([]byte, 4*steps)
	for i := range prog {
		prog[i] = byte(r.Uint32())
	}
	return prog
}

func TestPrograms(t *testing.T) {
	for _, size := range []int{MinBytes, 5 * MinBytes, 9 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			o := Options{MaxBytes: size, Access: size > MinBytes}
			if size == 5*MinBytes {
				o.Expiry = expiryOfModel
			}
			m := newModel(t, alloctest.New(t), o)
			defer m.c.Close()
			steps := 60_000
			if testing.Short() {
				steps = 6_000
			}
			m.run(program(uint64(size), steps))
			t.Logf("%+v", m.c.Stats())
		})
	}
}

// TestProgramsWithoutMemory: a call returns the parent's error, and the cache stays usable.
func TestProgramsWithoutMemory(t *testing.T) {
	for n := range 24 {
		for name, parent := range map[string]freehold.Allocator{
			"after": alloctest.FailAfter(alloctest.New(t), n), "once": alloctest.FailOnce(alloctest.New(t), n),
		} {
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				m := newModel(t, parent, Options{MaxBytes: MinBytes})
				m.fails = true
				defer m.c.Close()
				m.run(program(uint64(n), 500))
			})
		}
	}
}

// TestProgramsThatKeep: kept entries are not evicted. Other calls fail if there is no room.
func TestProgramsThatKeep(t *testing.T) {
	for _, size := range []int{MinBytes, 9 << 20} {
		for _, all := range []bool{false, true} {
			t.Run(fmt.Sprint(size, " all ", all), func(t *testing.T) {
				m := newModel(t, alloctest.New(t), Options{MaxBytes: size, KeepAll: all})
				m.fails, m.keeps = true, true
				defer m.c.Close()
				steps := 60_000
				if testing.Short() {
					steps = 6_000
				}
				m.run(program(uint64(size), steps))
				t.Logf("%+v", m.c.Stats())
			})
		}
	}
}

func FuzzCache(f *testing.F) {
	f.Add(program(1, 200))
	f.Fuzz(func(t *testing.T, prog []byte) {
		m := newModel(t, alloctest.New(t), Options{MaxBytes: MinBytes})
		defer m.c.Close()
		m.run(prog)
	})
}
