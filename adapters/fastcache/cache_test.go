// What differs from fastcache: files, sizes, and memory that is freed.

package fastcache

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cache"
	"github.com/freehold-go/freehold/internal/test/suite"
)

func stats(c *Cache) (s Stats) {
	c.UpdateStats(&s)
	return s
}

func TestSizes(t *testing.T) {
	c := New(1)
	defer c.Reset()
	for _, v := range []struct {
		key, value int
		set, big   bool
	}{
		{0, 0, true, true}, {16, 65 << 10, false, true}, {65 << 10, 16, false, false},
		{100, 64<<10 - 105, true, true}, {100, 64<<10 - 104, false, true}, {16, 15 << 20, false, true}, {16, 17 << 20, false, false},
	} {
		key, value := make([]byte, v.key), bytes.Repeat([]byte{7}, v.value)
		c.Set(key, value)
		if got, found := c.HasGet([]byte("x"), key); found != v.set || c.Has(key) != v.set || string(got) != "x"+strings.Repeat("\a", len(got)-1) || found && len(got) != 1+v.value {
			t.Errorf("Set of %d and %d bytes: found %v", v.key, v.value, found)
		}
		c.Del(key)
		c.SetBig(key, value)
		if got := c.GetBig(nil, key); len(got) > 0 != (v.big && v.value > 0) || len(got) > 0 && !bytes.Equal(got, value) {
			t.Errorf("SetBig of %d and %d bytes: found %d", v.key, v.value, len(got))
		}
		c.Del(key)
		if c.Has(key) {
			t.Errorf("%d and %d bytes stay after Del", v.key, v.value)
		}
	}
	s := stats(c)
	want := Stats{GetCalls: 28, SetCalls: 14, BytesSize: s.BytesSize, MaxBytesSize: 32 << 20, Misses: s.Misses, BigStats: BigStats{GetBigCalls: 7, SetBigCalls: 7, TooBigKeyErrors: 1}}
	if s != want || s.BytesSize == 0 || s.BytesSize > s.MaxBytesSize {
		t.Errorf("%+v, want %+v", s, want)
	}
	c.Reset()
	if s := stats(c); s != (Stats{BytesSize: s.BytesSize, MaxBytesSize: 32 << 20}) {
		t.Errorf("after Reset: %+v", s)
	}
	c.UpdateStats(&s)
	if s.MaxBytesSize != 64<<20 {
		t.Error("UpdateStats does not add")
	}
	if s.Reset(); s != (Stats{}) {
		t.Errorf("%+v after Stats.Reset", s)
	}
}

func TestFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "above", "saved")
	c := New(33 << 20)
	for i := range 1000 {
		c.Set(fmt.Append(nil, i), fmt.Append(nil, -i))
	}
	for range 2 { // the second replaces the first
		if err := errors.Join(c.SaveToFile(path), c.SaveToFileConcurrent(path+"/", 8)); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	for _, size := range []int{0, 33 << 20, 64 << 20} {
		loaded, err := LoadFromFileMaxBytes(path, size)
		if err != nil {
			t.Fatal(err)
		}
		if s := stats(loaded); s.EntriesCount != 1000 || s.SetCalls != 0 || s.MaxBytesSize != 64<<20 || string(loaded.Get(nil, []byte("77"))) != "-77" {
			t.Errorf("%+v", s)
		}
	}
	for size, entries := range map[int]uint64{64 << 20: 1000, 65 << 20: 0} {
		if s := stats(LoadFromFileOrNew(path, size)); s.EntriesCount != entries || s.MaxBytesSize != uint64(capacity(size)) {
			t.Errorf("%d: %+v", size, s)
		}
	}
	if _, err := LoadFromFileMaxBytes(path, 32<<20); err == nil || !strings.Contains(err.Error(), "capacity of 67108864 bytes, want 33554432") {
		t.Error(err)
	}
	entries, err := os.ReadFile(filepath.Join(path, entriesFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, damage := range []struct {
		file, text string
		is         error
	}{
		{entriesFile, string(entries[:len(entries)/2]), cache.ErrTruncated}, {entriesFile, "no snapshot of anything at all", cache.ErrForeign},
		{capacityFile, "1", nil}, {capacityFile, "-33554432", nil}, {capacityFile, "many", nil},
	} {
		if err := c.SaveToFile(path); err != nil {
			t.Fatal(err)
		}
		os.WriteFile(filepath.Join(path, damage.file), []byte(damage.text), 0o644)
		if _, err := LoadFromFile(path); err == nil || damage.is != nil && !errors.Is(err, damage.is) || damage.is == nil && !strings.Contains(err.Error(), "no capacity") {
			t.Errorf("%v: %v", damage, err)
		}
	}
	if _, err := LoadFromFile(path + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	other := t.TempDir()
	os.WriteFile(filepath.Join(other, foreignFile), nil, 0o644)
	if _, err := LoadFromFile(other); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "VictoriaMetrics") {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o644)
	if c.SaveToFile(filepath.Join(file, "below")) == nil {
		t.Error("saved below a file")
	}
	defer func() {
		if fmt.Sprint(recover()) != "fastcache.New: maxBytes must be greater than 0, and is -1" {
			t.Error("New(-1) does not panic")
		}
	}()
	New(-1)
}

// A Cache that nothing refers to is closed, and none while a method runs.
func TestDropped(t *testing.T) {
	kept := New(1)
	live := func() int { return freehold.Pages().Stats().Live }
	kept.SetBig([]byte("k"), make([]byte, 1<<20))
	before := live()
	for i := range 200 {
		key := fmt.Append(nil, i)
		New(1).SetBig(key, make([]byte, 1<<20))
		if New(1).Set(key, key); i%10 == 0 {
			runtime.GC()
		}
		if len(kept.GetBig(nil, []byte("k"))) != 1<<20 {
			t.Fatal("an entry is gone")
		}
	}
	suite.AwaitCollected(t, live, before)
	runtime.KeepAlive(kept)
}
