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
	"strconv"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cache"
	"github.com/freehold-go/freehold/internal/panics"
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
		{0, 0, true, true}, {16, 65 << 10, false, true}, {64<<10 - 4, 16, false, false},
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
	c.Set(nil, nil)
	s := stats(c)
	want := Stats{GetCalls: 28, SetCalls: 15, EntriesCount: 1, BytesSize: s.BytesSize, MaxBytesSize: 32 << 20, Misses: s.Misses, BigStats: BigStats{GetBigCalls: 7, SetBigCalls: 7, TooBigKeyErrors: 1}}
	if s != want || s.BytesSize == 0 || s.BytesSize > s.MaxBytesSize {
		t.Errorf("%+v, want %+v", s, want)
	}
	sum, big := s, s.BigStats
	c.UpdateStats(&sum)
	if sum != (Stats{2 * s.GetCalls, 2 * s.SetCalls, 2 * s.Misses, 0, 0, 2, 2 * s.BytesSize, 2 * s.MaxBytesSize, BigStats{GetBigCalls: 2 * big.GetBigCalls, SetBigCalls: 2 * big.SetBigCalls, TooBigKeyErrors: 2}}) {
		t.Errorf("UpdateStats does not add: %+v and then %+v", s, sum)
	}
	c.Reset()
	if s := stats(c); s != (Stats{BytesSize: s.BytesSize, MaxBytesSize: 32 << 20}) {
		t.Errorf("after Reset: %+v", s)
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
		{capacityFile, "1", nil}, {capacityFile, "0", nil}, {capacityFile, "-33554432", nil}, {capacityFile, "many", nil},
	} {
		if err := c.SaveToFile(path); err != nil {
			t.Fatal(err)
		}
		os.WriteFile(filepath.Join(path, damage.file), []byte(damage.text), 0o644)
		if _, err := LoadFromFile(path); err == nil || damage.is != nil && !errors.Is(err, damage.is) || damage.is == nil && !strings.Contains(err.Error(), "no capacity") {
			t.Errorf("%v: %v", damage, err)
		}
	}
	for _, text := range []string{"1099545182208", "4611686018427387904"} { // 1 TiB and 32 MiB; 1<<62
		os.WriteFile(filepath.Join(path, capacityFile), []byte(text), 0o644)
		want := "a capacity of " + text + " bytes, more than LoadFromFile makes"
		if strconv.IntSize == 32 {
			want = "no capacity"
		}
		if _, err := LoadFromFile(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
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
	for _, size := range []int{-1, 0} {
		panics.Want(t, fmt.Sprint("...: fastcache.New: maxBytes must be greater than 0, and is ", size), func() { New(size) })
	}
}

// A save that fails leaves the folder that was saved before, and nothing else. Here the names of the
// files in the new folder are too long.
func TestSaveThatFails(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the test knows the longest name on Linux, of 4,095 bytes")
	}
	dir := t.TempDir()
	for len(dir) < 4070 {
		dir += "/" + strings.Repeat("d", min(200, 4069-len(dir)))
	}
	c, path := New(1), filepath.Join(dir, "saved")
	c.Set([]byte("key"), []byte("value"))
	saved := filepath.Join(t.TempDir(), "saved")
	if err := errors.Join(c.SaveToFile(saved), os.MkdirAll(dir, 0o755), os.Rename(saved, path)); err != nil {
		t.Fatal(err)
	}
	err := c.SaveToFile(path)
	if left, e := os.ReadDir(dir); err == nil || e != nil || len(left) != 1 {
		t.Errorf("%v, %v after %v", left, e, err)
	}
	if c, err := LoadFromFile(path); err != nil || !c.Has([]byte("key")) {
		t.Error(err)
	}
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
