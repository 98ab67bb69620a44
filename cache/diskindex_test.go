package cache

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/freehold-go/freehold/internal/cuckoo"
	"github.com/freehold-go/freehold/internal/disk"
)

// TestCutIndex: an index that ends early is an error, wherever it ends.
func TestCutIndex(t *testing.T) {
	c := onDisk(t, Options{Format: "format"})
	for n := range 10 {
		must(0, c.Set(fmt.Append(nil, "key ", n), []byte("value")))
	}
	c.toDisk()
	var index bytes.Buffer
	must(0, c.saveDisk(&index))
	other := onDisk(t, Options{Format: "format"})
	for n := range index.Len() + 1 {
		other.Clear()
		if err := other.loadDisk(bytes.NewReader(index.Bytes()[:n])); (err == nil) != (n == index.Len()) {
			t.Errorf("an index of %d bytes of %d: %v", n, index.Len(), err)
		}
	}
	if n := other.Stats().Disk.Items; n != 10 {
		t.Errorf("%d entries of 10", n)
	}
	forged := bytes.Clone(index.Bytes())
	for i := range 8 { // the numbers of shards and parts
		forged[48+len("format")+i] = 0xFF
	}
	if err := other.loadDisk(bytes.NewReader(forged)); err == nil {
		t.Error("an index with 1<<32 - 1 shards and as many parts is loaded")
	}

	full := onDisk(t, Options{Format: "format"})
	full.shards[0].share = 0 // no memory for a chunk of the index
	if err := full.loadDisk(&index); err != nil || full.Stats().Disk.Items != 0 || full.Stats().Disk.Evicted != 10 {
		t.Errorf("without memory: %v, %+v", err, full.Stats().Disk)
	}
}

// TestAgeAfterRestart: an index that has no memory drops the oldest records also after a restart.
func TestAgeAfterRestart(t *testing.T) {
	dir := t.TempDir()
	o := Options{Disk: &Disk{Dir: dir}}
	c := onDisk(t, o)
	tr := c.shards[0].tier
	for n, last := 0, disk.Place(0); tr.newest >= last; n++ { // until the second lap
		last = tr.newest
		must(0, c.Set(fmt.Append(nil, "key ", n), make([]byte, 10_000)))
		c.toDisk()
		c.awaitWriter()
	}
	c.Close()
	c = onDisk(t, o)
	tr = c.shards[0].tier
	var all []diskSlot
	tr.each(&tr.parts[0], func(_ uint64, w diskSlot) bool { all = append(all, w); return true })
	slices.SortFunc(all, func(a, b diskSlot) int {
		return cmp.Or(cmp.Compare(tr.store.Seq(a.place()), tr.store.Seq(b.place())), cmp.Compare(a.place(), b.place()))
	})
	if len(all) < 100 {
		t.Fatalf("%d records", len(all))
	}
	if !slices.IsSortedFunc(all, func(a, b diskSlot) int { return cmp.Compare(tr.newest-b.place(), tr.newest-a.place()) }) {
		t.Errorf("newest is %d", tr.newest)
	}
}

// TestRestartOnDisk: the entries on disk are there after Close and New, with their versions, if the
// options fit. After a crash they are not.
func TestRestartOnDisk(t *testing.T) {
	dir := t.TempDir()
	key, long := "key", strings.Repeat("long key ", 20)
	o := Options{MaxBytes: 9 << 20, Format: "1", Disk: &Disk{Dir: dir, MaxBytes: 8 << 20}}
	version := uint64(0)
	for name, change := range map[string]func(o *Options){
		"the same":      func(*Options) {},
		"fewer shards":  func(o *Options) { o.MaxBytes = MinBytes },
		"more shards":   func(o *Options) { o.MaxBytes *= 8 },
		"other format":  func(o *Options) { o.Format = "22" },
		"other formats": func(o *Options) { o.Format = "2" },
		"other extras":  func(o *Options) { o.Access = true },
		"other size":    func(o *Options) { o.Disk = &Disk{Dir: dir, MaxBytes: 16 << 20} },
		"cut index":     func(*Options) {},
		"killed":        func(*Options) { must(0, os.Remove(filepath.Join(dir, "freehold.disk.index"))) },
	} {
		t.Run(name, func(t *testing.T) {
			c := New(newHeap(t), &o)
			c.raise(c.highestVersion() + 1<<50) // the system's clock is set back then
			must(0, c.Set([]byte(long), []byte("value")))
			version = must(c.Put([]byte(key), Entry{Value: []byte("value"), Flags: 3, TTL: time.Hour}))
			deleted := must(c.Put([]byte("deleted"), Entry{}))
			c.Delete([]byte("deleted"))
			c.toDisk()
			must(0, c.Set([]byte("memory"), nil))
			if name == "cut index" { // its checksum is right
				must(0, c.disk.Close(func(w io.Writer) error {
					var index bytes.Buffer
					must(0, c.saveDisk(&index))
					_, err := w.Write(index.Bytes()[:index.Len()-1])
					return err
				}))
			}
			c.Close()
			highest.Store(0) // as in another process
			again := o
			change(&again)
			c = New(newHeap(t), &again)
			defer c.Close()
			if st := c.Stats().Disk; st.Off != nil {
				t.Fatal(st.Off)
			}
			warm := name == "the same" || name == "fewer shards"
			if v := must(c.Put([]byte("deleted"), Entry{})); v <= deleted && warm {
				t.Errorf("a deleted key has version %d after %d", v, deleted)
			}
			found := c.View([]byte(key), func(e Entry) {
				if string(e.Value) != "value" || e.Flags != 3 || e.TTL < 59*time.Minute || e.TTL > time.Hour || e.Version != version {
					t.Errorf("%+v, want version %d", e, version)
				}
			})
			if _, ok := c.Get(nil, []byte(long)); found != warm || ok != warm {
				t.Errorf("found: %t, %t", found, ok)
			}
			if n := c.Stats().Disk.Items; !warm && n > 0 {
				t.Errorf("%d entries of another cache", n)
			}
			if v := must(c.Put([]byte(key), Entry{})); v <= version && warm {
				t.Errorf("version %d after %d", v, version)
			}
			c.check()
		})
	}
}

// TestParts: an index file with other numbers of parts than the cache would have is loaded. The
// cache has no more parts than the file.
func TestParts(t *testing.T) {
	divided := func(n int) *Cache {
		c := onDisk(t, Options{})
		tr := c.shards[0].tier
		for tr.parts = make([]cuckoo.Index, n); n > 0; n-- {
			tr.parts[n-1].Init(c.segmentBytes, &c.readers, &c.seam)
		}
		return c
	}
	for _, n := range [][2]int{{1, 4}, {2, 4}, {4, 4}, {4, 1}} {
		from, to := divided(n[0]), divided(n[1])
		for i := range 100 {
			must(0, from.Set(fmt.Append(nil, "key ", i), nil))
		}
		from.toDisk()
		var index bytes.Buffer
		must(0, from.saveDisk(&index))
		if err := to.loadDisk(&index); err != nil || len(to.shards[0].tier.parts) != min(n[0], n[1]) {
			t.Errorf("%d parts of %d in the file: %v", len(to.shards[0].tier.parts), n[0], err)
		}
		for i := range 100 {
			if key := fmt.Sprint("key ", i); !to.isOnDisk(key) {
				t.Errorf("%q is lost, with %d parts", key, n)
			}
		}
		to.check()
	}
}
