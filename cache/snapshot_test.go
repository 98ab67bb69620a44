package cache

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// firstBlockEnds is where the first block ends in a snapshot without an Options.Format.
const firstBlockEnds = len(snapshotMagic) + 4 + 8

// snapshotOf returns the snapshot of a cache with n entries.
func snapshotOf(t testing.TB, n int) []byte {
	c := newCache(t, Options{MaxBytes: 4 << 20})
	for i := range n {
		must(c.Put(fmt.Append(nil, "key ", i), Entry{Value: bytes.Repeat([]byte{byte(i)}, i), Flags: uint64(i) << (i % 60), TTL: time.Duration(i%3) * time.Hour}))
	}
	var b bytes.Buffer
	must(0, c.Snapshot(&b))
	return b.Bytes()
}

func TestSnapshot(t *testing.T) {
	const n = 1000
	path := filepath.Join(t.TempDir(), "snapshot")
	must(0, os.WriteFile(path, snapshotOf(t, n), 0o600))
	c := newCache(t, Options{MaxBytes: 4 << 20})
	must(0, c.RestoreFile(path))
	must(0, c.SnapshotFile(path))
	again := newCache(t, Options{MaxBytes: 4 << 20})
	must(0, again.RestoreFile(path))
	for i := range n {
		ttl := time.Duration(i%3) * time.Hour
		ok := again.View(fmt.Append(nil, "key ", i), func(e Entry) {
			if !bytes.Equal(e.Value, bytes.Repeat([]byte{byte(i)}, i)) || e.Flags != uint64(i)<<(i%60) {
				t.Errorf("entry %d has %d bytes, flags %d", i, len(e.Value), e.Flags)
			}
			if e.TTL < ttl-time.Minute || e.TTL > ttl {
				t.Errorf("entry %d has TTL %v, want %v", i, e.TTL, ttl)
			}
		})
		if !ok {
			t.Errorf("entry %d is missing", i)
		}
	}
}

// TestSnapshotHasQueuesAndHits: a restored entry has the queue and the hits that it had, so that
// eviction goes on as before.
func TestSnapshotHasQueuesAndHits(t *testing.T) {
	a, b := newCache(t, Options{MaxBytes: 1 << 20}), newCache(t, Options{MaxBytes: 2 << 20})
	for i := range 20_000 {
		k := fmt.Append(nil, i)
		must(0, a.Set(k, make([]byte, 100)))
		for range i % 5 {
			a.Get(nil, k)
		}
	}
	var stream bytes.Buffer
	if err := errors.Join(a.Snapshot(&stream), b.Restore(&stream)); err != nil {
		t.Fatal(err)
	}
	ranks := map[uint16]int{}
	for k := range a.All() {
		was := rankOf(a.found(k).w, false)
		ranks[was]++
		if is := rankOf(b.found(k).w, false); is != was {
			t.Fatalf("%s: rank %#b, want %#b", k, is, was)
		}
	}
	if len(ranks) < 2*maxHits {
		t.Errorf("ranks: %v", ranks)
	}
}

// TestRestoreWhileInUse: what is done to a key after BeginRestore, before its entry is restored,
// wins over the snapshot's entry.
func TestRestoreWhileInUse(t *testing.T) {
	const n, deleted = 1000, "no entry"
	for _, tt := range []struct {
		name string
		do   func(c *Cache, key []byte)
		want string
	}{
		{"set", func(c *Cache, key []byte) { must(0, c.Set(key, []byte("new"))) }, "new"},
		{"add", func(c *Cache, key []byte) { must(c.Add(key, Entry{Value: []byte("new")})) }, "new"},
		{"delete", func(c *Cache, key []byte) { c.Delete(key) }, deleted},
		{"set and delete", func(c *Cache, key []byte) { must(0, c.Set(key, []byte("new"))); c.Delete(key) }, deleted},
		{"set of an expired one", func(c *Cache, key []byte) { must(0, c.SetTTL(key, []byte("new"), -1)) }, deleted},
		{"set of one that is too large", func(c *Cache, key []byte) { c.Set(key, make([]byte, c.MaxEntry())) }, deleted},
		{"update", func(c *Cache, key []byte) {
			must(c.Update(key, func(e *Entry, found bool) Change { e.Value = []byte("new"); return Store }))
		}, "new"},
		{"removal by update", func(c *Cache, key []byte) {
			must(c.Update(key, func(*Entry, bool) Change { return Remove }))
		}, deleted},
		{"touch that ends it", func(c *Cache, key []byte) { c.Touch(key, -1) }, deleted},
		{"update that ends it", func(c *Cache, key []byte) {
			must(c.Update(key, func(e *Entry, _ bool) Change { e.TTL = -1; return Touch }))
		}, deleted},
		{"load", func(c *Cache, key []byte) {
			must(c.GetOrLoad(t.Context(), nil, key, func(context.Context) (Entry, error) { return Entry{Value: []byte("new")}, nil }))
		}, "new"},
		{"set and eviction", func(c *Cache, key []byte) {
			must(0, c.Set(key, []byte("new")))
			h := c.seed.Bytes(key)
			s := c.shardOf(h)
			s.mu.Lock()
			defer s.mu.Unlock()
			r, _ := s.current(h, key)
			s.drop(r.at, Room)
		}, deleted},
		{"touch", func(c *Cache, key []byte) { c.Touch(key, time.Hour) }, ""}, // of no entry yet
		{"read", func(c *Cache, key []byte) { c.Get(nil, key) }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCache(t, Options{MaxBytes: 4 << 20})
			rest := must(c.BeginRestore(bytes.NewReader(snapshotOf(t, n))))
			for i := 0; i < n; i += 100 {
				tt.do(c, fmt.Append(nil, "key ", i))
			}
			must(0, rest())
			missing := 0
			for i := range n {
				value, found := c.Get(nil, fmt.Append(nil, "key ", i))
				switch {
				case i%100 == 0 && tt.want != "":
					if !found {
						value = []byte(deleted)
					}
					if string(value) != tt.want {
						t.Errorf("key %d: %q, want %q", i, value, tt.want)
					}
				case !found:
					missing++
				case len(value) != i:
					t.Errorf("key %d has %d bytes of the snapshot", i, len(value))
				}
			}
			if missing > n/100 {
				t.Errorf("%d of %d others are missing", missing, n)
			}
			must(0, c.Set([]byte("key 1"), nil)) // no longer noted
			if len(c.shards[0].loads.restores) > 0 || c.shardOf(c.seed.Bytes([]byte("key 1"))).loads.n.Load() != 0 {
				t.Error("writes are noted after Restore")
			}
		})
	}
}

// TestClearOfARestore: Clear ends a Restore, and of what it would add nothing is there.
func TestClearOfARestore(t *testing.T) {
	c := newCache(t, Options{MaxBytes: 4 << 20})
	whole := snapshotOf(t, 1000)
	begun := false
	rest := must(c.BeginRestore(io.MultiReader(bytes.NewReader(whole[:len(whole)/2]), readerFunc(func([]byte) (int, error) {
		begun = c.Len() > 0
		c.Clear()
		must(0, c.Set([]byte("new"), nil))
		return 0, nil
	}), bytes.NewReader(whole[len(whole)/2:]))))
	if err := rest(); err != nil || !begun || c.Len() != 1 {
		t.Errorf("%v; entries before: %v, afterwards %d, want 1", err, begun, c.Len())
	}
}

// A readerFunc is called once, and then ends.
type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) {
	n, err := f(p)
	if err == nil {
		err = io.EOF
	}
	return n, err
}

// TestRestoresAtOnce: of two Restores each notes writes until it ends, and none from before it began.
func TestRestoresAtOnce(t *testing.T) {
	c := newCache(t, Options{MaxBytes: 4 << 20})
	whole := snapshotOf(t, 10)
	first, second := must(c.BeginRestore(bytes.NewReader(whole))), must(c.BeginRestore(bytes.NewReader(whole)))
	must(0, first())
	c.Delete([]byte("key 5"))
	must(0, second())
	if _, found := c.Get(nil, []byte("key 5")); found || c.Len() != 9 {
		t.Errorf("a deleted key is there: %v, of %d", found, c.Len())
	}
	first = must(c.BeginRestore(bytes.NewReader(whole)))
	c.Delete([]byte("key 5"))
	c.Clear()
	second = must(c.BeginRestore(bytes.NewReader(whole)))
	must(0, first())
	if n := c.Len(); n != 0 {
		t.Errorf("%d entries of a Restore that began before Clear", n)
	}
	must(0, second())
	if n := c.Len(); n != 10 {
		t.Errorf("%d entries of a Restore that began after Clear", n)
	}
}

// TestSnapshotsOfLittle: an empty cache has a snapshot, and so has an entry with empty key and
// value.
func TestSnapshotsOfLittle(t *testing.T) {
	if n := len(snapshotOf(t, 0)); n != firstBlockEnds+8+highestBytes {
		t.Errorf("a snapshot of nothing has %d bytes", n)
	}
	c := newCache(t, Options{})
	must(0, c.Set(nil, nil))
	var b bytes.Buffer
	must(0, c.Snapshot(&b))
	c.Clear()
	if err := c.Restore(&b); err != nil || c.Len() != 1 {
		t.Errorf("%v, and %d entries", err, c.Len())
	}
}

// A failingOnce is a writer whose nth write fails.
type failingOnce struct{ n int }

func (w *failingOnce) Write(b []byte) (int, error) {
	if w.n--; w.n == 0 {
		return 0, io.ErrClosedPipe
	}
	return len(b), nil
}

// TestSnapshotThatCannotBeWritten: Snapshot returns each error of the writer.
func TestSnapshotThatCannotBeWritten(t *testing.T) {
	c := newCache(t, Options{MaxBytes: 1 << 20})
	for i := range 150 {
		must(0, c.Set(fmt.Append(nil, i), make([]byte, 1000)))
	}
	n, w := 1, &failingOnce{}
	for ; w.n <= 0; n++ {
		w.n = n
		if err := c.Snapshot(w); (err == nil) != (w.n > 0) {
			t.Errorf("write %d failed, and Snapshot says %v", n, err)
		}
	}
	if n < 8 {
		t.Errorf("%d writes", n)
	}
}

// TestRestoreIntoLess: Restore into a smaller cache evicts entries, and leaves out entries that are
// too large.
func TestRestoreIntoLess(t *testing.T) {
	big := newCache(t, Options{MaxBytes: 4 << 20})
	must(0, big.Set([]byte("large"), make([]byte, 1<<19)))
	for i := range 1000 {
		must(0, big.Set(fmt.Append(nil, i), make([]byte, 1000)))
	}
	var b bytes.Buffer
	must(0, big.Snapshot(&b))
	b.WriteString("what follows")
	c := newCache(t, Options{})
	must(0, c.Restore(&b))
	if st := c.Stats(); st.Len == 0 || st.Evicted == 0 || b.String() != "what follows" {
		t.Errorf("%+v, and %d bytes are left", st, b.Len())
	}
	get(t, c, "large", "")
	c.check()
}

// TestRestoreAtTheSecond: Restore leaves out an entry that expires at this moment.
func TestRestoreAtTheSecond(t *testing.T) {
	c := newCache(t, Options{})
	clock := c.fake()
	must(0, c.SetTTL([]byte("k"), nil, time.Hour))
	var b bytes.Buffer
	must(0, c.Snapshot(&b))
	for _, left := range []time.Duration{1, 0, -1} {
		c.Clear()
		clock.now = time.Hour - left
		must(0, c.Restore(bytes.NewReader(b.Bytes())))
		if found := c.Peek([]byte("k"), func(Entry) {}); found != (left > 0) {
			t.Errorf("with %v left it is found: %t", left, found)
		}
		if n := c.Len(); n != int(max(left, 0)) {
			t.Errorf("with %v left there are %d entries", left, n)
		}
	}
}

// TestRestoreWithoutMemory: Restore returns the parent's error, and the cache is then empty.
func TestRestoreWithoutMemory(t *testing.T) {
	whole := snapshotOf(t, 300)
	refused := 0
	for n := range 20 {
		c := New(alloctest.FailAfter(alloctest.New(t), n), &Options{MaxBytes: 4 << 20})
		if err := c.Restore(bytes.NewReader(whole)); err != nil {
			refused++
			if !errors.Is(err, freehold.ErrOutOfMemory) || c.Len() != 0 {
				t.Errorf("after %d blocks: %v, and %d entries", n, err, c.Len())
			}
		}
		c.Close()
	}
	if refused == 0 {
		t.Error("no Restore was refused")
	}
}

// TestSnapshotFileErrors: errors name the file.
func TestSnapshotFileErrors(t *testing.T) {
	c := newCache(t, Options{})
	dir := t.TempDir()
	must(0, os.MkdirAll(filepath.Join(dir, "taken", "by a folder"), 0o700))
	must(0, os.WriteFile(filepath.Join(dir, "foreign"), []byte("not a snapshot, but some text"), 0o600))
	for _, tt := range []struct {
		call func(path string) error
		name string
		want error
	}{
		{c.SnapshotFile, "taken", nil},
		{c.SnapshotFile, "missing/snapshot", os.ErrNotExist},
		{c.RestoreFile, "missing", os.ErrNotExist},
		{c.RestoreFile, "foreign", ErrForeign},
	} {
		err := tt.call(filepath.Join(dir, tt.name))
		if err == nil || tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.name) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}

// TestSnapshotFileThatCannotBeNamed: SnapshotFile returns the error of its last step, and leaves no
// file.
func TestSnapshotFileThatCannotBeNamed(t *testing.T) {
	c := newCache(t, Options{})
	c.fake()
	must(0, c.SetTTL([]byte("k"), []byte("v"), time.Hour))
	path := filepath.Join(t.TempDir(), "snapshot")
	wall := c.clock.wall
	c.clock.wall = func() time.Time { // while the entry is written
		must(0, os.MkdirAll(filepath.Join(path, "taken"), 0o700))
		return wall()
	}
	if err := c.SnapshotFile(path); err == nil {
		t.Error("the path is a folder's, and SnapshotFile has no error")
	}
	if files := must(os.ReadDir(filepath.Dir(path))); len(files) != 1 {
		t.Errorf("%d files, want the folder alone", len(files))
	}
}

// A slow stream advances the clock with each read and write.
type slow struct {
	io.Reader
	io.Writer
	clock *fakeTime
	by    time.Duration
}

func (s *slow) Read(b []byte) (int, error) {
	s.clock.now += s.by
	return s.Reader.Read(b)
}

func (s *slow) Write(b []byte) (int, error) {
	s.clock.now += s.by
	return s.Writer.Write(b)
}

// TestSlowSnapshots: Snapshot and Restore do not change when an entry expires, however long they
// take, with any Options.Jitter.
func TestSlowSnapshots(t *testing.T) {
	const entries, life = 200, 100 * time.Second
	c := newCache(t, Options{MaxBytes: 1 << 20, Jitter: 0.5})
	clock := c.fake()
	clock.now = 300 * time.Millisecond
	c.clock.jitter = 0
	for i := range entries {
		must(0, c.SetTTL(fmt.Append(nil, i), make([]byte, 1000), life))
	}
	c.clock.jitter = 0.5
	for range 10 {
		var b bytes.Buffer
		must(0, c.Snapshot(&slow{Writer: &b, clock: clock, by: 100 * time.Millisecond}))
		c.Clear()
		must(0, c.Restore(&slow{Reader: &b, clock: clock, by: 100 * time.Millisecond}))
	}
	if clock.now > life/2 {
		t.Fatalf("it took %v", clock.now)
	}
	for _, left := range []time.Duration{1, 0} {
		clock.now = life + time.Second - left // 300 ms are rounded up
		n := 0
		for range c.All() {
			n++
		}
		if want := entries * int(left); n != want {
			t.Errorf("with %v left there are %d entries, want %d", left, n, want)
		}
	}
}

// TestResizeDuringSnapshot: a writer that stalls delays no call. Write itself may call the cache.
func TestResizeDuringSnapshot(t *testing.T) {
	c := newCache(t, Options{MaxBytes: 4 << 20})
	fill(t, c)
	writes := 0
	must(0, c.Snapshot(writerFunc(func(b []byte) (int, error) {
		writes++
		c.Resize([]int{512 << 10, 8 << 20}[writes%2])
		must(0, c.Set(fmt.Append(nil, writes), b[:len(b)/2]))
		c.check()
		return len(b), nil
	})))
	if writes < 10 {
		t.Errorf("%d writes", writes)
	}
}

type writerFunc func(b []byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// TestVersionsDuringSnapshot: an entry that is written while Snapshot runs gets a higher version
// from Restore, even in a process whose clock was set back.
func TestVersionsDuringSnapshot(t *testing.T) {
	c := newCache(t, Options{MaxBytes: 2 << 20})
	const keys = 300
	var versions [][keys]uint64 // of each write, which is the entry's flags
	w := &recorder{before: func() {
		versions = append(versions, [keys]uint64{})
		n := len(versions) - 1
		for i := range keys {
			versions[n][i] = must(c.Put(fmt.Append(nil, i), Entry{Value: make([]byte, 900+n), Flags: uint64(n)}))
		}
	}}
	w.before()
	must(0, c.Snapshot(w))
	later := newCache(t, Options{MaxBytes: 2 << 20})
	for i := range later.shards {
		later.shards[i].age, later.shards[i].floor = 0, 0
	}
	must(0, later.Restore(&w.Buffer))
	late := 0
	for i := range keys {
		later.Peek(fmt.Append(nil, i), func(e Entry) {
			if old := versions[e.Flags][i]; e.Version <= old {
				t.Errorf("key %d: version %d, and %d after Restore", i, old, e.Version)
			}
			if e.Flags > 4 { // after the head and the first block
				late++
			}
		})
	}
	if late == 0 {
		t.Error("no entry was written during Snapshot")
	}
}

// A recorder is a buffer that calls a function before each write.
type recorder struct {
	bytes.Buffer
	before func()
}

func (r *recorder) Write(b []byte) (int, error) {
	r.before()
	return r.Buffer.Write(b)
}

// holes is a file of zeros. Only its first 64 MiB can be read.
type holes struct{ read int }

func (h *holes) Read(b []byte) (int, error) {
	if h.read += len(b); h.read > 64<<20 {
		return 0, errors.New("too much is read")
	}
	clear(b)
	return len(b), nil
}

// TestForgedLengths: a block that claims to be longer than any is not read.
func TestForgedLengths(t *testing.T) {
	for _, n := range []int{len(snapshotMagic) + 4, firstBlockEnds} {
		for _, length := range []uint32{math.MaxUint32, mostBlock + 1} {
			stream := binary.LittleEndian.AppendUint32(snapshotOf(t, 0)[:n], length)
			err := newCache(t, Options{}).Restore(io.MultiReader(bytes.NewReader(stream), &holes{}))
			if !errors.Is(err, ErrCorrupt) {
				t.Errorf("%d bytes at %d: %v", length, n, err)
			}
		}
	}
}

// TestForeignSnapshots: Restore of a foreign stream fails with ErrForeign, and the cache is as it
// was.
func TestForeignSnapshots(t *testing.T) {
	whole := snapshotOf(t, 3)
	older := bytes.Clone(whole)
	older[len(snapshotMagic)]--
	tests := []struct{ format, stream, want string }{
		{"b 2", string(whole), `its Options.Format is "", and this cache's is "b 2"`},
		{"", string(older), "its format is version 2, and this release reads version 3"},
		{"", "something else, and not a snapshot", ErrForeign.Error()},
		{"", "", ErrForeign.Error()},
	}
	for _, tt := range tests {
		c := newCache(t, Options{Format: tt.format})
		must(0, c.Set([]byte("k"), []byte("v")))
		if err := c.Restore(strings.NewReader(tt.stream)); !errors.Is(err, ErrForeign) || !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("%v, want %q", err, tt.want)
		}
		get(t, c, "k", "v")
	}
	c := newCache(t, Options{Format: "b 2"})
	must(0, c.Set([]byte("k"), []byte("v")))
	var b bytes.Buffer
	must(0, c.Snapshot(&b))
	c.Clear()
	must(0, c.Restore(&b))
	get(t, c, "k", "v")
}

// TestSnapshotHeadThatFails: Restore deletes nothing after an error in the head of a snapshot.
func TestSnapshotHeadThatFails(t *testing.T) {
	whole, failure := snapshotOf(t, 3), errors.New("no")
	damaged := bytes.Clone(whole)
	damaged[len(snapshotMagic)+4+4]++ // the first block's checksum
	for _, tt := range []struct {
		rest io.Reader
		want error
	}{
		{failingReader{failure}, failure},
		{bytes.NewReader(whole[:len(snapshotMagic)+6]), ErrTruncated},
		{bytes.NewReader(damaged), ErrCorrupt},
	} {
		c := newCache(t, Options{})
		must(0, c.Set([]byte("before"), []byte("v")))
		err := c.Restore(readerFunc(func(b []byte) (int, error) {
			must(0, c.Set([]byte("meanwhile"), []byte("v")))
			return tt.rest.Read(b)
		}))
		if !errors.Is(err, tt.want) {
			t.Errorf("%v, want %v", err, tt.want)
		}
		get(t, c, "before", "v")
		get(t, c, "meanwhile", "v")
	}
}

// TestDamagedSnapshots: each cut and each changed byte is an error. The cache is then empty.
func TestDamagedSnapshots(t *testing.T) {
	whole := snapshotOf(t, 30)
	c := newCache(t, Options{})
	refused := func(b []byte, want ...error) {
		t.Helper()
		err := c.Restore(bytes.NewReader(b))
		for _, e := range want {
			if errors.Is(err, e) && c.Len() == 0 {
				return
			}
		}
		t.Errorf("%d bytes: %v, and %d entries; want %v", len(b), err, c.Len(), want)
	}
	for n := range len(whole) {
		refused(whole[:n], ErrForeign, ErrTruncated)
	}
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 0x10
		refused(b, ErrForeign, ErrTruncated, ErrCorrupt)
	}
	failure := errors.New("no")
	if err := c.Restore(io.MultiReader(bytes.NewReader(whole[:100]), failingReader{failure})); err != failure {
		t.Errorf("a reader that fails: %v", err)
	}
	must(0, c.Restore(bytes.NewReader(whole)))
}

// TestFailedRestoreKeepsWrites: a Restore that fails on its way deletes what it has stored, and no
// entry that was written meanwhile.
func TestFailedRestoreKeepsWrites(t *testing.T) {
	whole := snapshotOf(t, 1000)
	c := newCache(t, Options{MaxBytes: 4 << 20})
	must(0, c.Set([]byte("key 1"), []byte("before")))
	half := len(whole) / 2
	rest := must(c.BeginRestore(io.MultiReader(bytes.NewReader(whole[:half]), readerFunc(func([]byte) (int, error) {
		if c.Len() < 100 {
			t.Errorf("%d entries are restored", c.Len())
		}
		must(0, c.Set([]byte("key 2"), []byte("new")))
		must(0, c.Set([]byte("mine"), []byte("new")))
		return 0, io.EOF
	}))))
	if err := rest(); err != ErrTruncated {
		t.Error(err)
	}
	get(t, c, "key 1", "")
	get(t, c, "key 2", "new")
	get(t, c, "mine", "new")
	if n := c.Len(); n > 7 { // 5 with hashes like those of the two
		t.Errorf("%d entries are left", n)
	}
	c.check()
}

// TestFailedRestoreEmptiesTheDisk: after a failed Restore, no older entry is on disk.
func TestFailedRestoreEmptiesTheDisk(t *testing.T) {
	c := onDisk(t, Options{})
	must(0, c.Set([]byte("old"), []byte("old")))
	c.toDisk()
	whole := snapshotOf(t, 10)
	if err := c.Restore(bytes.NewReader(whole[:len(whole)-1])); err != ErrTruncated {
		t.Error(err)
	}
	get(t, c, "old", "")
	if st := c.Stats(); st.Len+st.Disk.Items > 0 {
		t.Errorf("%+v", st)
	}
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

// TestHostileSnapshots: a block with a valid checksum may have any content. Restore reads nothing
// beyond the block, and returns an error or stores entries.
func TestHostileSnapshots(t *testing.T) {
	whole := snapshotOf(t, 6)
	c := newCache(t, Options{MaxBytes: 1 << 20, Access: true})
	last := len(whole) - 8 - highestBytes
	block, end := whole[firstBlockEnds+8:last], whole[last:]
	restored := 0
	for i := range block {
		for _, flip := range []byte{1, 0x80, 0xFF} {
			hostile := bytes.Clone(block)
			hostile[i] ^= flip
			stream := binary.LittleEndian.AppendUint32(bytes.Clone(whole[:firstBlockEnds+4]), checksum(1, hostile))
			stream = append(append(stream, hostile...), end...)
			switch err := c.Restore(bytes.NewReader(stream)); {
			case err == nil:
				restored++
			case !errors.Is(err, ErrCorrupt) || c.Len() != 0:
				t.Errorf("byte %d: %v, and %d entries", i, err, c.Len())
			}
			c.check()
		}
	}
	huge := bytes.Clone(block[:highestBytes+entryHeadBytes])
	// The sum of the sizes is 0 in 32 bits.
	binary.LittleEndian.PutUint32(huge[highestBytes:], 1<<31)
	binary.LittleEndian.PutUint32(huge[highestBytes+4:], 1<<31)
	if _, err := (&restorer{c: c}).block(huge); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a key and a value of 2 GiB each: %v", err)
	}
	if restored == 0 || restored == 3*len(block) {
		t.Errorf("%d of %d are whole", restored, 3*len(block))
	}
}

// FuzzRestore: any bytes are an error or a snapshot.
func FuzzRestore(f *testing.F) {
	f.Add(snapshotOf(f, 10))
	f.Fuzz(func(t *testing.T, b []byte) {
		c := newCache(t, Options{})
		if err := c.Restore(bytes.NewReader(b)); err != nil && c.Len() != 0 {
			t.Errorf("%v, and %d entries stay", err, c.Len())
		}
		c.check()
	})
}

// A restore from a file grows the index first. It takes no more than the entries need in the end,
// and a shard that is half full is left alone.
func TestRestoreGrowsTheIndexFirst(t *testing.T) {
	const entries, maxBytes = 20_000, 1 << 20
	path := filepath.Join(t.TempDir(), "entries")
	full := newCache(t, Options{MaxBytes: maxBytes})
	for i := range entries {
		full.Set(fmt.Append(nil, i), nil)
	}
	if err := full.SnapshotFile(path); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const blockBytes, restored = 1000, 30 // about 32 bytes an entry, as in the file
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		maxBytes, before int
		r                io.Reader
		restored         int
		least, most      int64 // new slots, in percent of what the file's entries need
	}{
		"a file":           {maxBytes, 0, f, restored, 100, 130},
		"a small cache":    {MinBytes, 0, f, restored, 3, 60},
		"half full":        {maxBytes, 12_000, f, restored, 0, 0},
		"no file":          {maxBytes, 0, bytes.NewReader(nil), restored, 0, 0},
		"an expired block": {maxBytes, 0, f, 0, 0, 0},
		"a cache in use":   {maxBytes, 1, f, restored, 100, 130},
	} {
		c := newCache(t, Options{MaxBytes: test.maxBytes})
		for i := range test.before {
			c.Set(fmt.Append(nil, -i), []byte("0123456789012345678901234567890123456789"))
		}
		before := c.Stats().Slots
		c.expect(test.r, blockBytes, test.restored)
		needed := info.Size() * restored / blockBytes
		if slots := int64(c.Stats().Slots - before); slots*100 < needed*test.least || slots*100 > needed*test.most {
			t.Errorf("%s: %d new slots, and the file has about %d entries", name, slots, needed)
		}
		c.check()
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		if err := c.Restore(f); err != nil {
			t.Fatal(err)
		}
		c.check()
		if s := c.Stats(); s.Slots > 3*s.Len && s.Index > len(c.shards)*2*c.segmentBytes {
			t.Errorf("%s: %d slots for %d entries", name, s.Slots, s.Len)
		}
	}
}

// TestRestorePanics: after a reader has panicked, another Restore adds the keys that were written
// before.
func TestRestorePanics(t *testing.T) {
	snapshot := snapshotOf(t, 1)
	c := newCache(t, Options{})
	func() {
		defer func() { recover() }()
		c.Restore(io.MultiReader(bytes.NewReader(snapshot[:len(snapshot)-1]), panicky{}))
		t.Error("no panic")
	}()
	c.Delete([]byte("key 0"))
	must(0, c.Restore(bytes.NewReader(snapshot)))
	if n := c.Len(); n != 1 {
		t.Errorf("%d entries", n)
	}
}

type panicky struct{}

func (panicky) Read([]byte) (int, error) { panic("read") }
