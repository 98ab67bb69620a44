package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/internal/test/await"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

func keyOf(i int) []byte { return fmt.Appendf(nil, "key %d", i) }

// fill sets keys from first on, with values of n bytes, until the ring has opened count regions. It
// returns the key after the last.
func (x *index) fill(t testing.TB, first, count, n int) (next int) {
	t.Helper()
	for until := x.s.opened.Load() + uint64(count); x.s.opened.Load() < until || x.s.open == nil; first++ {
		if !x.set(keyOf(first), valueOf(keyOf(first), 1, n), Meta{Version: 1}) {
			x.settle()
			first--
		}
		if x.s.off.Load() != nil {
			return first
		}
	}
	return first
}

// check reads the keys below next. Each value must be the right one, or there must be none. It
// returns the number of hits, and the errors by kind.
func (x *index) check(t testing.TB, next int) (hits int, errs map[error]int) {
	t.Helper()
	errs = map[error]int{}
	for i := range next {
		v, m, ok, err := x.get(keyOf(i))
		switch {
		case err != nil:
			errs[err]++
		case ok:
			hits++
			if !bytes.Equal(v, valueOf(keyOf(i), 1, len(v))) || len(v) < len(keyOf(i)) || m != (Meta{Version: 1}) {
				t.Errorf("key %d has a wrong value", i)
			}
		}
	}
	return hits, errs
}

// A disk that fails makes misses, which are counted, and never a wrong value. One that goes on to
// fail is turned off, with one line in the log, and leaves no index.
func TestFaults(t *testing.T) {
	eio := func([]byte, int64) (int, error) { return 0, syscall.EIO }
	failing := func(reads int32) func(*Store) {
		return func(s *Store) {
			var n atomic.Int32
			read := s.readAt
			s.readAt = func(b []byte, off int64) (int, error) {
				if n.Add(1) <= reads {
					return 0, syscall.EIO
				}
				return read(b, off)
			}
		}
	}
	for _, test := range []struct {
		name string
		wrap func(*Store)
		off  error // that ends the use of the disk
		want func(Stats) bool
	}{
		{"a write fails", func(s *Store) { s.writeAt = eio }, syscall.EIO, func(st Stats) bool { return st.WriteErrors == 1 }},
		{"a full disk", func(s *Store) {
			s.writeAt = func(b []byte, _ int64) (int, error) { return len(b) / 2, syscall.ENOSPC }
		}, syscall.ENOSPC, func(st Stats) bool { return st.WriteErrors == 1 }},
		{"reads fail", func(s *Store) { s.readAt = eio }, syscall.EIO, func(st Stats) bool { return st.ReadErrors >= maxReadErrors }},
		{"seven reads fail", failing(maxReadErrors - 1), nil, func(st Stats) bool { return st.ReadErrors == maxReadErrors-1 }},
		{"eight reads fail", failing(maxReadErrors), syscall.EIO, func(st Stats) bool { return st.ReadErrors == maxReadErrors }},
		{"short reads", func(s *Store) {
			s.readAt = func(b []byte, off int64) (int, error) { return s.file.ReadAt(b[:len(b)/2], off) }
		}, io.ErrUnexpectedEOF, func(st Stats) bool { return st.ReadErrors >= maxReadErrors }},
		{"a truncated file", func(s *Store) {
			write := s.writeAt
			s.writeAt = func(b []byte, off int64) (int, error) {
				n, err := write(b, off)
				return n, errors.Join(err, s.file.Truncate(headerBytes))
			}
		}, io.ErrUnexpectedEOF, func(st Stats) bool { return st.ReadErrors >= maxReadErrors }},
		{"torn writes", func(s *Store) {
			write := s.writeAt
			s.writeAt = func(b []byte, off int64) (int, error) { // the second half is an older lap's
				if _, err := write(b[:len(b)/2], off); err != nil {
					return 0, err
				}
				return len(b), nil
			}
		}, nil, func(st Stats) bool { return st.Damaged > 0 && st.Lost > 0 }},
		{"lost writes", func(s *Store) { // as of a disk that forgets what it had in its memory
			write, n := s.writeAt, 0
			s.writeAt = func(b []byte, off int64) (int, error) {
				if n++; n%8 == 7 {
					return len(b), nil
				}
				return write(b, off)
			}
		}, nil, func(st Stats) bool { return st.Damaged > 0 && st.Lost > 0 }},
		{"writes to another place", func(s *Store) {
			write, n := s.writeAt, 0
			s.writeAt = func(b []byte, off int64) (int, error) {
				if n++; n%8 == 7 {
					off = headerBytes + (off-headerBytes+testRegion)%(16*testRegion)
				}
				return write(b, off)
			}
		}, nil, func(st Stats) bool { return st.Damaged > 0 && st.Lost > 0 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			var log bytes.Buffer
			o := small(t, 16)
			o.wrap = func(s *Store) {
				test.wrap(s)
				s.scanAt = s.readAt
			}
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			x, _ := open(t, o)
			next := x.fill(t, 0, 40, 500)
			for range 2 { // what failed once fails again
				x.check(t, next)
			}
			st := x.s.Stats()
			if !errors.Is(st.Off, test.off) || !test.want(st) {
				t.Errorf("%+v, want it off by %v", st, test.off)
			}
			lines := 0
			if test.off != nil {
				lines = 1
				if hits, errs := x.check(t, next); hits > 0 || len(errs) > 0 && errs[ErrOff] == 0 {
					t.Errorf("%d hits and the errors %v of a store that is off", hits, errs)
				}
				if x.set(keyOf(0), nil, Meta{}) {
					t.Error("Append takes a record when the store is off")
				}
			}
			filetest.Must(t, x.s.Close(x.save)) // waits for the writer's line in the log
			if strings.Count(log.String(), "\n") != lines || lines > 0 && !strings.Contains(log.String(), o.Dir) {
				t.Errorf("the log has %q, want %d lines", log.String(), lines)
			}
			if y, warm := open(t, o); warm == (test.off != nil) {
				t.Errorf("warm: %v", warm)
			} else if warm {
				y.check(t, next)
			}
		})
	}
}

// A changed byte of a record damages this record and no other. A changed byte of a table loses the
// region when it is reclaimed. All other bytes mean nothing.
func TestFlips(t *testing.T) {
	o := small(t, 8)
	x, _ := open(t, o)
	next := x.fill(t, 0, 20, 300)
	x.settle()
	file, err := os.ReadFile(x.s.file.Name())
	filetest.Must(t, err)
	if bytes.Contains(file, bytes.Repeat([]byte{0xCD}, 16)) {
		t.Error("undefined memory is written to the file")
	}
	type record struct {
		key      int
		from, to int64
	}
	regions := map[uint64][]record{} // those that are written, by sequence number
	for i := range next {
		if sl, ok := x.at[x.hash(keyOf(i))]; ok && x.s.Seq(sl.at) < x.s.opened.Load() {
			from := int64(sl.at) * UnitBytes
			to := from + int64(HeadBytes+len(keyOf(i))+len(valueOf(keyOf(i), 1, 300)))
			regions[x.s.Seq(sl.at)] = append(regions[x.s.Seq(sl.at)], record{i, from, to})
		}
	}
	if len(regions) < 3 {
		t.Fatalf("%d regions are on the disk", len(regions))
	}
	r := rand.New(rand.NewPCG(1, 2))
	for seq, records := range regions {
		if testing.Short() && seq%3 != 0 {
			continue
		}
		first := x.s.offset(x.s.index(seq))
		table := first + testRegion - int64(footerBytes+len(records)*entryBytes)
		for off := first; off < first+testRegion; off++ {
			write := func(b byte) { freehold.Must(x.s.file.WriteAt([]byte{b}, off)) }
			write(file[off] ^ 1<<r.IntN(8))
			for _, rec := range records {
				var want error
				if off >= rec.from && off < rec.to {
					want = ErrDamaged
				}
				v, _, ok, err := x.get(keyOf(rec.key))
				if !ok || err != want || err == nil && !bytes.Equal(v, valueOf(keyOf(rec.key), 1, 300)) {
					t.Fatalf("byte %d, and the record from %d to %d: %v, want %v", off, rec.from, rec.to, err, want)
				}
			}
			if good := x.s.readTable(seq); good != (off < table) {
				t.Fatalf("byte %d, and the table from %d on: good %v", off, table, good)
			}
			write(file[off])
		}
	}
}

// A region is overwritten between any two steps of a read. The read finds the old record or says
// that it is overwritten, even if the new record at the place has the same key and size.
func TestOverwrittenWhileRead(t *testing.T) {
	for _, test := range []struct {
		name string
		read func(s *Store, b []byte, off int64, overwrite func()) (int, error)
		want error
	}{
		{"before", func(s *Store, b []byte, off int64, overwrite func()) (int, error) {
			overwrite()
			return s.file.ReadAt(b, off)
		}, ErrOverwritten},
		{"between two pages", func(s *Store, b []byte, off int64, overwrite func()) (int, error) {
			n, err := s.file.ReadAt(b[:len(b)/2], off)
			overwrite()
			m, err2 := s.file.ReadAt(b[n:], off+int64(n))
			return n + m, errors.Join(err, err2)
		}, ErrOverwritten},
		{"after", func(s *Store, b []byte, off int64, overwrite func()) (int, error) {
			n, err := s.file.ReadAt(b, off)
			overwrite()
			return n, err
		}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var during func()
			o := small(t, 8)
			o.wrap = func(s *Store) {
				s.readAt = func(b []byte, off int64) (int, error) {
					if f := during; f != nil {
						during = nil
						return test.read(s, b, off, f)
					}
					return s.file.ReadAt(b, off)
				}
			}
			x, _ := open(t, o)
			key := []byte("key")
			put := func(version uint64) Place {
				if !x.set(key, valueOf(key, version, 3000), Meta{Version: version}) {
					t.Fatal("no room")
				}
				x.settle()
				return x.at[x.hash(key)].at
			}
			at := put(0)
			seq := x.s.Seq(at)
			put(1)
			during = func() {
				for version := uint64(2); put(version) != at; version++ {
				}
				put(1) // so that the region is written
			}
			v, m, err := x.s.Read(nil, at, Size(len(key), len(valueOf(key, 0, 3000))), key)
			if during != nil || err != test.want || x.s.Seq(at) == seq {
				t.Fatalf("%v, want %v", err, test.want)
			}
			if err == nil && (m.Version != 0 || !bytes.Equal(v, valueOf(key, 0, 3000))) {
				t.Error("a wrong value")
			}
			if st := x.s.Stats(); st.Damaged > 0 || (st.Overwritten == 1) != (err == ErrOverwritten) {
				t.Errorf("%+v", st)
			}
		})
	}
}

// Regions are reclaimed although all reads of readers fail.
func TestWriterPassesReaders(t *testing.T) {
	o := small(t, 8)
	o.wrap = func(s *Store) {
		s.readAt = func([]byte, int64) (int, error) { return 0, syscall.EIO }
	}
	x, _ := open(t, o)
	x.fill(t, 0, 20, 500)
	x.settle()
	if st := x.s.Stats(); st.Reclaimed < 12 || st.Lost > 0 || st.ReadErrors > 0 {
		t.Errorf("%+v", st)
	}
}

// BufferBytes is bounded on both sides, and by the file.
func TestBufferBytes(t *testing.T) {
	for _, test := range []struct{ bytes, regions, want int }{
		{0, 100, 4}, {5*testRegion - 1, 100, 4}, {5 * testRegion, 100, 5}, {1 << 30, 100, 16}, {1 << 30, 9, 4},
	} {
		o := small(t, test.regions)
		o.BufferBytes = test.bytes
		x, _ := open(t, o)
		if got, st := len(x.s.buffers), x.s.Stats(); got != test.want || st.MemoryBytes != (got+1)*testRegion {
			t.Errorf("%d bytes, %d regions: %d buffers, want %d; %+v", test.bytes, test.regions, got, test.want, st)
		}
		x.check(t, x.fill(t, 0, 2*test.regions, 500))
	}
}

// Append never waits for the disk: with all buffers full it drops records. A record in a buffer can
// be read before it is written.
func TestAppendNeverWaits(t *testing.T) {
	written := make(chan struct{})
	o := small(t, 16)
	o.wrap = func(s *Store) {
		write := s.writeAt
		s.writeAt = func(b []byte, off int64) (int, error) {
			<-written
			return write(b, off)
		}
	}
	x, _ := open(t, o)
	n := 0
	for x.set(keyOf(n), valueOf(keyOf(n), 1, 500), Meta{Version: 1}) {
		n++
	}
	if hits, errs := x.check(t, n); hits != n || len(errs) > 0 || n < leastBuffers*testRegion/700 {
		t.Errorf("%d hits of %d, errors %v", hits, n, errs)
	}
	if st := x.s.Stats(); st.Reads != uint64(n) || st.Buffered != uint64(n) || st.NoBuffer != 1 || st.Appended != uint64(n) || st.WrittenBytes != 0 {
		t.Errorf("%+v", st)
	}
	close(written)
	x.settle()
	if hits, _ := x.check(t, n); hits != n || !x.set(keyOf(n), nil, Meta{}) {
		t.Errorf("%d hits of %d after the writes", hits, n)
	}
}

// TestFullRegion: the last record of a region leaves room for the table. A record with a longer key
// than a record can have is dropped.
func TestFullRegion(t *testing.T) {
	const last = testRegion - 8*7*UnitBytes - 9*entryBytes - footerBytes // after 8 records of 7 units
	for size, want := range map[int]bool{last &^ (UnitBytes - 1): true, last&^(UnitBytes-1) + UnitBytes: false} {
		b := &buffer{mem: make([]byte, testRegion)}
		for range 8 {
			b.add(0, 7*UnitBytes)
		}
		if _, ok := b.add(0, size); ok != want {
			t.Errorf("a record of %d bytes fits: %t", size, ok)
		}
	}
	o := small(t, 8)
	o.region, o.MaxBytes = regionBytes, MinBytes+headerBytes
	x, _ := open(t, o)
	for n, want := range map[int]bool{maxKeyBytes: true, maxKeyBytes + 1: false} {
		if _, ok := x.s.Append(&Record{Key: make([]byte, n)}); ok != want {
			t.Errorf("a key of %d bytes fits: %t", n, ok)
		}
	}
}

// TestLargeTable: a table that is larger than the part of the region that is read first is read
// whole. The footer is on another page than the first entry.
func TestLargeTable(t *testing.T) {
	const region, small1, large = 128 << 10, 1704, 23 * UnitBytes // they fill a region
	o := small(t, 8)
	o.region, o.MaxBytes = region, headerBytes+8*region
	x, _ := open(t, o)
	for n := 0; x.s.Stats().Reclaimed == 0; n++ {
		var value []byte
		if n%(small1+1) == small1 {
			value = make([]byte, large-HeadBytes-20)
		}
		if !x.set(keyOf(n), value, Meta{}) {
			t.Fatal("no room")
		}
		x.settle()
	}
	if st := x.s.Stats(); st.Lost > 0 || len(x.at)%(small1+1) > 1 {
		t.Errorf("%d records stay, %+v", len(x.at), st)
	}
}

// TestRoundedSize: a reader that knows only a bound of the size reads no further than the region.
func TestRoundedSize(t *testing.T) {
	x, _ := open(t, small(t, 8))
	key := []byte("key")
	for at := Place(0); x.s.index(x.s.Seq(at)) != 7 || x.s.Seq(at) == 0 || x.s.Seq(at) == x.s.opened.Load(); {
		at = x.at[x.hash(key)].at
		x.set(keyOf(0), make([]byte, 3000), Meta{})
		x.settle()
		if x.s.index(x.s.Seq(at)) != 7 {
			x.set(key, make([]byte, 500), Meta{})
		}
	}
	if _, _, err := x.s.Read(nil, x.at[x.hash(key)].at, testRegion, key); err != nil {
		t.Error(err)
	}
}

// TestAfterClose: Read and Append say that the store is closed, and the second Close is a no-op.
// The first error that turns a store off is the one that Stats returns.
func TestAfterClose(t *testing.T) {
	x, _ := open(t, small(t, 8))
	x.set(keyOf(0), nil, Meta{})
	sl := x.at[x.hash(keyOf(0))]
	if _, _, err := x.s.Read(nil, sl.at, sl.size, keyOf(1)); err != ErrOtherKey || x.s.Stats().OtherKey != 1 {
		t.Errorf("%v of another key, %+v", err, x.s.Stats())
	}
	filetest.Must(t, x.s.Close(nil))
	if _, _, err := x.s.Read(nil, sl.at, sl.size, keyOf(0)); err != ErrOff {
		t.Errorf("Read returns %v", err)
	}
	if x.set(keyOf(0), nil, Meta{}) {
		t.Error("Append takes a record")
	}
	filetest.Must(t, x.s.Close(func(io.Writer) error { return io.EOF }))
	x.s.turnOff("read", syscall.EIO)
	x.s.turnOff("write", syscall.ENOSPC)
	if err := x.s.Stats().Off; !errors.Is(err, syscall.EIO) {
		t.Errorf("it is off by %v", err)
	}
}

// TestOutdatedPlace: a reader that comes a lap after the owner has given up its place finds other
// bytes there. The store takes them for damage, and the owner knows better.
func TestOutdatedPlace(t *testing.T) {
	x, _ := open(t, small(t, 8))
	key := []byte("key")
	x.set([]byte("first"), make([]byte, 100), Meta{})
	x.set(key, make([]byte, 1000), Meta{})
	x.mu.Lock()
	sl, seq := x.at[x.hash(key)], x.s.Seq(x.at[x.hash(key)].at)
	x.mu.Unlock()
	for n := range 43 { // each in a region of its own, where key is in its middle
		x.set(key, valueOf(key, uint64(n), 3000), Meta{})
		x.settle()
	}
	if _, _, err := x.s.Read(nil, sl.at, sl.size, key); err != ErrDamaged || x.isStill(x.hash(key), sl.at, seq) {
		t.Errorf("%v, want %v of a place that is outdated", err, ErrDamaged)
	}
}

// A read at a place of an older lap, whose region is being filled again, finds no record before the
// new one is complete. The buffer may become free while a reader waits for it.
func TestReadOfABuffer(t *testing.T) {
	o := small(t, 8)
	x, _ := open(t, o)
	key := []byte("key")
	read := func(at Place) error {
		_, _, err := x.s.Read(nil, at, 1000, key)
		return err
	}
	put := func(n int) Place {
		if !x.set(key, make([]byte, n), Meta{}) {
			t.Fatal("no room")
		}
		x.settle()
		return x.at[x.hash(key)].at
	}
	put(10)
	second := put(10) // the second record of a region
	for seq := x.s.Seq(second); x.s.Seq(second) == seq; {
		put(3000)
	}
	// The buffer had a region with a record in this unit before.
	if err := read(second); err != ErrOverwritten {
		t.Errorf("within a record that is being filled: %v", err)
	}

	at := put(10)
	b := x.s.open
	b.pins.Lock() // as when it becomes free
	done, result := make(chan bool, 1), make(chan error, 1)
	go func() {
		result <- read(at)
		done <- true
	}()
	if !await.Lock("disk.(*Store).read", done) {
		t.Fatal("Read does not wait for the buffer")
	}
	seq := b.seq.Load()
	b.seq.Store(0)
	b.pins.Unlock()
	if err := <-result; err != ErrDamaged { // the region is not in the file
		t.Errorf("a buffer that is free: %v", err)
	}
	b.seq.Store(seq)
	if err := read(at); err != nil {
		t.Error(err)
	}
}

// The writer waits for a goroutine that copies a record to its buffer, or from it.
func TestWriterWaits(t *testing.T) {
	if runtime.GOARCH == "wasm" {
		t.Skip("no file is written while another goroutine runs")
	}
	for _, test := range []struct {
		name string
		// begin begins the copy in the open region, and end ends it.
		begin func(s *Store, r *Record) (at Place, end func())
		in    string
	}{
		{"to a buffer", func(s *Store, r *Record) (Place, func()) {
			size := Size(len(r.Key), len(r.Value))
			b, off := s.reserve(r.Hash, size)
			return s.place(b.seq.Load(), off), func() { b.fill(r, off, size) }
		}, "disk.(*Store).write"},
		{"from a buffer", func(s *Store, r *Record) (Place, func()) {
			at, _ := s.Append(r)
			b := s.open
			b.pins.RLock()
			return at, b.pins.RUnlock
		}, "disk.(*buffer).release"},
	} {
		t.Run(test.name, func(t *testing.T) {
			done := make(chan bool, 1)
			o := small(t, 16)
			o.wrap = func(s *Store) {
				wrote, n := s.wrote, 0
				s.wrote = func() {
					wrote()
					if n++; n == 2 { // the first is before any region
						done <- true
					}
				}
			}
			x, _ := open(t, o)
			r := &Record{Key: []byte("key"), Value: valueOf([]byte("key"), 1, 100)}
			at, end := test.begin(x.s, r)
			x.fill(t, 0, 2, 500)
			if !await.Lock(test.in, done) {
				t.Fatal("the writer does not wait")
			}
			end()
			x.settle()
			if v, _, err := x.s.Read(nil, at, Size(len(r.Key), len(r.Value)), r.Key); err != nil || !bytes.Equal(v, r.Value) {
				t.Errorf("%v", err)
			}
		})
	}
}

// Reclaiming rewrites the records of the highest priority, in at most half of a region. It reads no
// more than the table if there are none.
func TestReclaim(t *testing.T) {
	var read atomic.Int64
	o := small(t, 8)
	o.region, o.MaxBytes = 64<<10, headerBytes+8*64<<10
	o.wrap = func(s *Store) {
		s.readAt = func(b []byte, off int64) (int, error) {
			read.Add(int64(len(b)))
			return s.file.ReadAt(b, off)
		}
	}
	x, _ := open(t, o)
	priority := func(key int) int { return key % 5 } // 4 counts as 3, the highest
	for key := 0; x.s.Stats().Reclaimed == 0; key++ {
		if !x.set(keyOf(key), valueOf(keyOf(key), 1, 1000), Meta{Version: 1}) {
			t.Fatal("no room")
		}
		x.mu.Lock()
		sl := x.at[x.hash(keyOf(key))]
		sl.hits = priority(key)
		x.at[x.hash(keyOf(key))] = sl
		x.mu.Unlock()
		x.settle()
	}
	st := x.s.Stats()
	if st.RewrittenBytes == 0 || st.RewrittenBytes > 32<<10 || st.RewrittenBytes < 30<<10 {
		t.Errorf("%d bytes were written again, want about 32 KiB", st.RewrittenBytes)
	}
	kept := [5]int{}
	inRegion := int((64<<10 - footerBytes) / (Size(5, len(valueOf(keyOf(0), 1, 1000))) + entryBytes))
	for key := range inRegion {
		if _, ok := x.at[x.hash(keyOf(key))]; ok {
			kept[priority(key)]++
		}
	}
	if kept[0] != 0 || kept[1] != 0 || kept[2] == 0 || kept[2] >= inRegion/5 || kept[3] < inRegion/5 || kept[4] < inRegion/5 {
		t.Errorf("records of a region that stay, by priority: %v", kept)
	}
	clear(x.at)
	read.Store(0)
	before := x.s.Stats().Reclaimed
	for key := 0; x.s.Stats().Reclaimed == before; key++ {
		x.set(keyOf(key), valueOf(keyOf(key), 1, 1000), Meta{Version: 1})
		x.settle()
	}
	if read.Load() > tailBytes {
		t.Errorf("%d bytes were read to empty a region", read.Load())
	}
}

// Open refuses other files and sizes, changes nothing, and keeps nothing open.
func TestOpenRefuses(t *testing.T) {
	foreign := []byte("somebody's notes")
	for _, test := range []struct {
		name    string
		prepare func(t *testing.T, path string, o *Options)
		want    string
	}{
		{"a foreign file", func(t *testing.T, path string, _ *Options) {
			filetest.Must(t, os.WriteFile(path, foreign, 0o600))
		}, `it is not the file of a disk tier, or its header is damaged: it begins with "somebody's notes"; remove it`},
		{"a symbolic link", func(t *testing.T, path string, o *Options) {
			if err := os.Symlink(filepath.Join(o.Dir, "target"), path); err != nil {
				t.Skip(err)
			}
		}, "is no regular file"},
		{"a directory", func(t *testing.T, path string, _ *Options) {
			filetest.Must(t, os.Mkdir(path, 0o700))
		}, "is no regular file"},
		{"a missing directory", func(_ *testing.T, _ string, o *Options) { o.Dir = filepath.Join(o.Dir, "missing") }, "missing"},
		{"another store", func(t *testing.T, _ string, o *Options) {
			if runtime.GOARCH == "wasm" {
				t.Skip("a system without locks")
			}
			open(t, *o)
			o.sleep = func(time.Duration) {}
		}, "another cache has it open"},
		{"too small", func(_ *testing.T, _ string, o *Options) { o.MaxBytes = 8*testRegion - 1 }, "32767 bytes, want 32768 to"},
		{"too large", func(_ *testing.T, _ string, o *Options) { o.MaxBytes = MaxBytes + 1 }, "want 32768 to 274877906944"},
		{"a disk without room", func(t *testing.T, _ string, o *Options) {
			if runtime.GOOS != "linux" {
				t.Skip("a system that may not allocate")
			}
			o.MaxBytes, o.region = MaxBytes, regionBytes
		}, syscall.ENOSPC.Error()},
		{"an index that stays", func(t *testing.T, path string, _ *Options) {
			filetest.Must(t, os.MkdirAll(filepath.Join(path+".index", "file"), 0o700))
		}, ".index"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := small(t, 16)
			o.Owner = newIndex()
			path := filepath.Join(o.Dir, fileName)
			test.prepare(t, path, &o)
			before, _ := os.ReadFile(path)
			s, _, err := Open(o)
			if err == nil {
				s.Close(nil)
				t.Fatal("Open succeeds")
			}
			if !strings.HasPrefix(err.Error(), "freehold: ") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %s", err, test.want)
			}
			if after, _ := os.ReadFile(path); len(before) > 0 && !bytes.Equal(before, after) {
				t.Error("the file is changed")
			}
		})
	}
}

// TestDamagedHeader: Open refuses a file whose first bytes are not the tier's, and leaves it as it
// is. A file that begins as the tier's does is the tier's: if the rest of the header is damaged, or
// the file ends anywhere, Open begins empty, says so, and writes the header again.
func TestDamagedHeader(t *testing.T) {
	var log bytes.Buffer
	o := small(t, 16)
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	x, _ := open(t, o)
	next := x.fill(t, 0, 4, 500)
	filetest.Must(t, x.s.Close(x.save))
	path := filepath.Join(o.Dir, fileName)
	index, file := freehold.Must(os.ReadFile(path+".index")), freehold.Must(os.ReadFile(path))
	step := 1
	if testing.Short() {
		step = 7
	}
	for at := 0; at < len(file); at += step {
		for _, cut := range []bool{false, true} {
			damaged := bytes.Clone(file)
			if cut {
				damaged = damaged[:at]
			} else {
				damaged[at] ^= 1
			}
			log.Reset()
			filetest.Must(t, os.WriteFile(path, damaged, 0o600), os.WriteFile(path+".index", index, 0o600))
			y := newIndex()
			o.Owner, o.Load = y, y.load
			s, warm, err := Open(o)
			if isRefused := !cut && at < len(headerText); isRefused != (err != nil) {
				t.Fatalf("byte %d, cut %t: %v", at, cut, err)
			} else if isRefused {
				if got := freehold.Must(os.ReadFile(path)); !bytes.Equal(got, damaged) || !strings.Contains(err.Error(), "header is damaged") {
					t.Errorf("byte %d: %v; unchanged: %t", at, err, bytes.Equal(got, damaged))
				}
				continue
			}
			y.s = s
			if want := !cut && at >= headerBytes; warm != want {
				t.Errorf("byte %d, cut %t: warm %t", at, cut, warm)
			}
			if want := at < headerBytes && !cut || cut && at > 0; (log.Len() > 0) != want {
				t.Errorf("byte %d, cut %t: the log has %q", at, cut, log.String())
			}
			if got := freehold.Must(os.ReadFile(path)); len(got) != len(file) || !bytes.Equal(got[:headerBytes], file[:headerBytes]) {
				t.Errorf("byte %d, cut %t: the file has %d bytes", at, cut, len(got))
			}
			hits, errs := y.check(t, next)
			if warm && hits < next-1 || !warm && hits+len(errs) > 0 {
				t.Errorf("byte %d, cut %t: %d hits of %d, %v", at, cut, hits, next, errs)
			}
			filetest.Must(t, s.Close(nil))
		}
		if at > headerBytes {
			at += 199 * step
		}
	}
}

// TestLockedForAWhile: Open waits for a file that is locked, as one is for some time after a process
// was killed, but not for ever.
func TestLockedForAWhile(t *testing.T) {
	if runtime.GOARCH == "wasm" {
		t.Skip("a system without locks")
	}
	o := small(t, 16)
	first, _ := open(t, o)
	waited, end := time.Duration(0), lockWait+1
	o.sleep = func(d time.Duration) {
		if waited += d; waited >= end {
			filetest.Must(t, first.s.Close(nil))
			end = math.MaxInt64
		}
	}
	o.Owner = newIndex()
	if _, _, err := Open(o); err == nil || waited != lockWait {
		t.Fatalf("Open waits for %v, and returns %v", waited, err)
	}
	waited, end = 0, lockWait
	open(t, o)
	if waited != lockWait {
		t.Errorf("Open waits for %v", waited)
	}
}

// A panic of the parent or of Load leaves neither the file open nor memory in use.
func TestPanickingOpen(t *testing.T) {
	o := small(t, 16)
	o.Owner = newIndex()
	x, _ := open(t, o)
	filetest.Must(t, x.s.Close(x.save))
	closed := freehold.NewHeap(nil)
	closed.Close()
	for want, failing := range map[string]Options{
		"freehold: Heap.Zeroed: ...": {Parent: closed},
		"of Load":                    {Parent: o.Parent, Load: func(io.Reader) error { panic("of Load") }},
	} {
		p := o
		p.Parent, p.Load = failing.Parent, failing.Load
		panics.Want(t, want, func() { Open(p) })
	}
	o.sleep = func(time.Duration) { t.Error("the file is still locked") }
	open(t, o)
}

// Without memory Open fails, and frees all that it took. A Read then uses the Go heap.
func TestNoMemory(t *testing.T) {
	o := small(t, 16)
	o.Owner = newIndex()
	parent := o.Parent
	for n := 0; ; n++ {
		o.Parent = alloctest.FailAfter(parent, n)
		s, _, err := Open(o)
		if err != nil {
			if !errors.Is(err, freehold.ErrOutOfMemory) {
				t.Fatal(err)
			}
			continue
		}
		filetest.Must(t, s.Close(nil))
		if n < leastBuffers+1 {
			t.Errorf("Open takes %d blocks", n)
		}
		o.Parent = alloctest.FailAfter(parent, n) // not one block more than Open takes
		x, _ := open(t, o)
		next := x.fill(t, 0, 4, 500)
		x.settle()
		if hits, errs := x.check(t, next); hits == 0 || len(errs) > 0 || x.s.Stats().NoMemory == 0 {
			t.Errorf("%d hits, %v, %+v", hits, errs, x.s.Stats())
		}
		return
	}
}
