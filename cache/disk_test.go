package cache

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/owners"
	"github.com/freehold-go/freehold/internal/panics"
)

// TestDiskFails: damaged records are misses, and a disk that fails or cannot be opened is not used.
func TestDiskFails(t *testing.T) {
	c := onDisk(t, Options{})
	file := filepath.Join(c.options.Disk.Dir, "freehold.disk")
	for n := range 100 {
		must(0, c.Set(fmt.Append(nil, "key ", n), make([]byte, 20_000)))
	}
	c.toDisk()
	for c.Stats().Disk.WrittenBytes == 0 {
		runtime.Gosched()
	}
	b := must(os.ReadFile(file))
	for i := 5000; i < len(b); i += 5000 {
		b[i] ^= 1
	}
	must(0, os.WriteFile(file, b, 0))
	for n := range 100 {
		key := fmt.Append(nil, "key ", n)
		if c.View(key, func(e Entry) {
			if string(e.Value) != string(make([]byte, 20_000)) {
				t.Errorf("%q has wrong bytes", key)
			}
		}); !c.isInMemory(string(key)) && c.isOnDisk(string(key)) {
			t.Errorf("%q stays on disk", key)
		}
	}
	if st := c.Stats().Disk; st.Errors < 10 {
		t.Errorf("%+v", st)
	}
	must(0, os.Truncate(file, 0))
	for n := range 100 {
		c.Get(nil, fmt.Append(nil, "key ", n))
	}
	for n := 0; c.Stats().Disk.Off == nil; n++ { // the regions of those in memory
		key := fmt.Append(nil, "late ", n%100)
		must(0, c.Set(key, make([]byte, 20_000)))
		c.toDisk()
		c.Get(nil, key)
		must(0, os.Truncate(file, 0))
	}
	must(0, c.Set([]byte("key"), []byte("value")))
	get(t, c, "key", "value")
	c.toDisk()
	get(t, c, "key", "")
	c.check()

	second := newShared(t, Options{MaxBytes: MinBytes, Disk: c.options.Disk})
	if st := second.Stats().Disk; st.Off == nil || !strings.Contains(st.Off.Error(), "freehold.disk") {
		t.Errorf("two caches use one file: %+v", st)
	}
	must(0, second.Set([]byte("key"), []byte("value")))
	get(t, second, "key", "value")
	second.toDisk()
	get(t, second, "key", "")
}

// TestBadDiskOptions: New panics for mistakes.
func TestBadDiskOptions(t *testing.T) {
	for want, o := range map[string]Options{
		"Disk without a Dir":              {Disk: &Disk{MaxBytes: 8 << 20}},
		"Disk.MaxBytes 8388607":           {Disk: &Disk{Dir: "x", MaxBytes: 8<<20 - 1}},
		"Disk.MinValue -1":                {Disk: &Disk{Dir: "x", MaxBytes: 8 << 20, MinValue: -1}},
		"Options.Disk together with Coll": {Disk: &Disk{Dir: "x", MaxBytes: 8 << 20}, Collect: true},
		"Options.Disk together with Keep": {Disk: &Disk{Dir: "x", MaxBytes: 8 << 20}, KeepAll: true},
	} {
		o.MaxBytes = MinBytes
		panics.Want(t, "freehold: cache.New: Options."+strings.TrimPrefix(want, "Options.")+"...", func() { New(freehold.Pages(), &o) })
	}
}

// TestDiskOverClosedHeap: New panics before it opens the file, and leaves no watch.
func TestDiskOverClosedHeap(t *testing.T) {
	defer owners.WatchTo(io.Discard)()
	h := freehold.NewHeap(&freehold.HeapOptions{Name: "closed"})
	h.Close()
	o := Options{MaxBytes: MinBytes, Disk: &Disk{Dir: t.TempDir(), MaxBytes: 8 << 20}}
	panics.Want(t, `freehold: cache.New: heap "closed" is closed`, func() { New(h, &o) })
	if files := must(os.ReadDir(o.Disk.Dir)); len(files) > 0 || len(owners.Open(kind.Type)) > 0 {
		t.Errorf("New leaves %v and %v", files, owners.Open(kind.Type))
	}
}
