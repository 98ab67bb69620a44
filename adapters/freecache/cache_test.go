// What freecache's tests leave out: figures, late reads, and memory that is freed.

package freecache

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/test/suite"
	"github.com/freehold-go/freehold/internal/vm"
)

// A second is a Timer that a test sets.
type second uint32

func (s *second) Now() uint32 { return uint32(*s) }

// Each call reads, changes or deletes an entry at the second 100. The entry expires at that second,
// at 101, or never.
func TestCalls(t *testing.T) {
	key, failed := []byte("key"), errors.New("failed")
	type result struct {
		value string
		err   error
	}
	none := result{"", ErrNotFound}
	for name, call := range map[string]struct {
		f                func(c *Cache) ([]byte, error)
		live, late       result
		liveRow, lateRow figures // of what f counts
		left             int64   // entries after the call, if it was late
	}{
		"Get": {func(c *Cache) ([]byte, error) { return c.Get(key) }, result{"old", nil}, none, figures{hits: 1}, figures{misses: 1, expired: 1}, 0},
		"buffer": {func(c *Cache) ([]byte, error) {
			buf := make([]byte, 1, 9)
			v, err := c.GetWithBuf(key, buf)
			if err == nil && &v[0] != &buf[0] {
				err = failed
			}
			return v, err
		}, result{"old", nil}, none, figures{hits: 1}, figures{misses: 1, expired: 1}, 0},
		"MultiGet": {func(c *Cache) ([]byte, error) {
			v, errs := c.MultiGet([][]byte{[]byte("x"), key})
			return v[1], errs[1]
		}, result{"old", nil}, none, figures{hits: 1, misses: 1}, figures{misses: 2, expired: 1}, 0},
		"GetFn": {func(c *Cache) (v []byte, err error) {
			err = c.GetFn(key, func(b []byte) error { v = append(v, b...); return failed })
			return v, err
		}, result{"old", failed}, none, figures{hits: 1}, figures{misses: 1, expired: 1}, 0},
		"Peek": {func(c *Cache) ([]byte, error) { return c.Peek(key) }, result{"old", nil}, result{"old", nil}, figures{}, figures{}, 1},
		"PeekFn": {func(c *Cache) (v []byte, err error) {
			err = c.PeekFn(key, func(b []byte) error { v = append(v, b...); return failed })
			return v, err
		}, result{"old", failed}, result{"old", failed}, figures{}, figures{}, 1},
		"Set":                 {func(c *Cache) ([]byte, error) { return nil, c.Set(key, nil, 1) }, result{}, result{}, figures{overwrites: 1}, figures{overwrites: 1}, 1},
		"largest":             {func(c *Cache) ([]byte, error) { return nil, c.Set(key, make([]byte, 512-24-3), 1) }, result{}, result{}, figures{overwrites: 1}, figures{overwrites: 1}, 1},
		"too large by a byte": {func(c *Cache) ([]byte, error) { return nil, c.Set(key, make([]byte, 512-24-2), 1) }, result{"", ErrLargeEntry}, result{"", ErrLargeEntry}, figures{}, figures{}, 1},
		"too large":           {func(c *Cache) ([]byte, error) { return nil, c.Set(key, make([]byte, 1000), 1) }, result{"", ErrLargeEntry}, result{"", ErrLargeEntry}, figures{}, figures{}, 1},
		"long key":            {func(c *Cache) ([]byte, error) { return nil, c.Set(make([]byte, 1<<16), nil, 1) }, result{"", ErrLargeKey}, result{"", ErrLargeKey}, figures{}, figures{}, 1},
		"Touch":               {func(c *Cache) ([]byte, error) { return nil, c.Touch(key, 9) }, result{}, none, figures{}, figures{misses: 1, expired: 1}, 0},
		"Touch of a long key": {func(c *Cache) ([]byte, error) { return nil, c.Touch(make([]byte, 1<<16), 9) }, result{"", ErrLargeKey}, result{"", ErrLargeKey}, figures{}, figures{}, 1},
		"GetOrSet":            {func(c *Cache) ([]byte, error) { return c.GetOrSet(key, []byte("new"), 1) }, result{"old", nil}, result{}, figures{hits: 1}, figures{misses: 1, expired: 1}, 1},
		"SetAndGet": {func(c *Cache) ([]byte, error) {
			v, _, err := c.SetAndGet(key, []byte("new"), 1)
			return v, err
		}, result{"old", nil}, result{}, figures{hits: 1, overwrites: 1}, figures{misses: 1, expired: 1}, 1},
		"Update": {func(c *Cache) ([]byte, error) {
			_, _, err := c.Update(key, func([]byte, bool) ([]byte, bool, int) { return nil, false, 0 })
			return nil, err
		}, result{}, result{}, figures{hits: 1}, figures{misses: 1, expired: 1}, 0},
		"Update too large": {func(c *Cache) ([]byte, error) {
			_, _, err := c.Update(key, func([]byte, bool) ([]byte, bool, int) { return make([]byte, 1000), true, 0 })
			return nil, err
		}, result{"", ErrLargeEntry}, result{"", ErrLargeEntry}, figures{hits: 1}, figures{misses: 1, expired: 1}, 0},
		"Del": {func(c *Cache) ([]byte, error) {
			if !c.Del(key) || c.Del(key) {
				return nil, failed
			}
			return nil, nil
		}, result{}, result{}, figures{}, figures{}, 0},
		"TTL": {func(c *Cache) (v []byte, err error) { _, err = c.TTL(key); return nil, err }, result{}, none, figures{}, figures{}, 1},
	} {
		for seconds, late := range map[int]bool{0: false, 1: true, 2: false} {
			now := second(99)
			c := NewCacheCustomTimer(0, &now)
			c.Set(key, []byte("old"), seconds)
			c.ResetStatistics()
			now = 100
			v, err := call.f(c)
			want, row := call.live, call.liveRow
			if late {
				want, row = call.late, call.lateRow
			}
			got := figures{c.EvacuateCount(), c.ExpiredCount(), c.OverwriteCount(), c.HitCount(), c.MissCount()}
			if string(v) != want.value || err != want.err || got != row || late && c.EntryCount() != call.left {
				t.Errorf("%s, %d seconds: %q, %v, %+v, %d entries; want %+v, %+v, %d", name, seconds, v, err, got, c.EntryCount(), want, row, call.left)
			}
			for i := range v {
				v[i] = 'x'
			}
			if left, _ := c.Peek(key); strings.Contains(string(left), "x") {
				t.Errorf("%s returns the cache's memory", name)
			}
			if c.LookupCount() != row.hits+row.misses || c.HitRate() != float64(row.hits)/float64(max(row.hits+row.misses, 1)) {
				t.Errorf("%s: %d lookups, rate %v", name, c.LookupCount(), c.HitRate())
			}
			if c.Clear(); c.EntryCount() != 0 || c.HitCount() != 0 || c.OverwriteCount() != 0 {
				t.Errorf("%s: after Clear %+v", name, c.total())
			}
		}
	}
}

// A timerFunc is a Timer.
type timerFunc func() uint32

func (f timerFunc) Now() uint32 { return f() }

// A Get that finds an expired entry leaves the one that another call stores meanwhile.
func TestStoredBesideExpiry(t *testing.T) {
	key, now, store := []byte("key"), uint32(99), false
	var c *Cache
	c = NewCacheCustomTimer(0, timerFunc(func() uint32 {
		if store {
			store = false
			c.Set(key, []byte("new"), 9)
		}
		return now
	}))
	c.Set(key, []byte("old"), 1)
	now, store = 100, true
	if v, err := c.Get(key); err != ErrNotFound {
		t.Errorf("%q, %v", v, err)
	}
	if v, err := c.Get(key); string(v) != "new" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
}

// Entries have a TTL if the timer is the system's time, so that the cache drops expired ones first.
func TestSystemsTime(t *testing.T) {
	cached, now := NewCachedTimer(), second(100)
	defer cached.Stop()
	for timer, want := range map[Timer]time.Duration{nil: 9 * time.Second, cached: 9 * time.Second, &now: 0} {
		if e := NewCacheCustomTimer(0, timer).entry(nil, 9); e.TTL != want {
			t.Errorf("%T: a TTL of %v, want %v", timer, e.TTL, want)
		}
	}
}

// What Touch sets, and what it leaves.
func TestTouched(t *testing.T) {
	now := second(100)
	c := NewCacheCustomTimer(0, &now)
	c.SetInt(1, []byte("value"), 0)
	for _, seconds := range []int{9, 0, -1, 7} {
		if err := c.Touch(intKey(1), seconds); err != nil {
			t.Fatal(err)
		}
		v, expireAt, err := c.GetIntWithExpiration(1)
		if left, _ := c.TTL(intKey(1)); string(v) != "value" || err != nil || int(left) != max(seconds, 0) || expireAt != left+min(left, 1)*100 {
			t.Errorf("%d seconds: %q, at %d, %d left, %v", seconds, v, expireAt, left, err)
		}
	}
	if c.TouchedCount() != 4 || c.OverwriteCount() != 0 || c.Touch([]byte("x"), 1) != ErrNotFound {
		t.Errorf("%d touched, %d overwrites", c.TouchedCount(), c.OverwriteCount())
	}
	if now = 107; c.NewIterator().Next() != nil {
		t.Error("an expired entry")
	}
	if now = 106; c.NewIterator().Next().ExpireAt != 107 || !c.DelInt(1) || c.AverageAccessTime() != 0 {
		t.Error("no entry")
	}
}

// Each call returns nil for an empty value, as in freecache.
func TestEmptyValue(t *testing.T) {
	c := NewCache(0)
	key := []byte("key")
	c.Set(key, []byte{}, 0)
	got, _ := c.Get(key)
	before, _ := c.GetOrSet(key, []byte("value"), 0)
	old, found, _ := c.SetAndGet(key, []byte{}, 0)
	if got != nil || before != nil || old != nil || !found {
		t.Errorf("%v, %v, %v, found %t", got, before, old, found)
	}
}

// The entries of an iterator are copies, which stay as they are.
func TestIteratorsEntries(t *testing.T) {
	c := NewCache(0)
	for i := range int64(100) {
		c.SetInt(i, intKey(i), 0)
	}
	var all []*Entry
	it := c.NewIterator()
	for e := it.Next(); e != nil; e = it.Next() {
		all = append(all, e)
	}
	seen := map[string]bool{}
	for _, e := range all {
		if seen[string(e.Key)] = true; string(e.Key) != string(e.Value) {
			t.Errorf("the key %v has the value %v", e.Key, e.Value)
		}
	}
	if len(seen) != 100 {
		t.Errorf("%d keys, want 100", len(seen))
	}
}

// ResetStatistics begins the count of evicted entries anew.
func TestEvacuated(t *testing.T) {
	c := NewCache(0)
	for i := range int64(10_000) {
		c.SetInt(i, make([]byte, 400), 0)
	}
	before := c.EvacuateCount()
	if c.ResetStatistics(); before < 8000 || c.EvacuateCount() != 0 {
		t.Errorf("%d entries are evicted, and %d after the reset", before, c.EvacuateCount())
	}
}

// Set fails once no memory is left.
func TestSetWithoutMemory(t *testing.T) {
	defer vm.SetFault(func(vm.Op) error { return errors.ErrUnsupported })()
	c := NewCache(1 << 30)
	var err error
	for i := int64(0); i < 1000 && err == nil; i++ { // until the pages of earlier caches are used up
		err = c.SetInt(i, make([]byte, 1_000_000), 0)
	}
	if !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Error(err)
	}
}

// A timer that is stopped has no goroutine, and the access time is in seconds.
func TestInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timer := NewCachedTimer()
		c := NewCacheCustomTimer(0, timer)
		c.SetInt(1, nil, 0)
		time.Sleep(5500 * time.Millisecond)
		if late := int64(timer.Now()) - c.AverageAccessTime(); late != 5 {
			t.Errorf("the access was %d seconds ago, want 5", late)
		}
		timer.Stop()
	})
}

// Update asks and counts once. With more than 256 shards (four for each processor), package cache
// calls Update's function twice for a large entry.
func TestUpdateAsksOnce(t *testing.T) {
	if strconv.IntSize == 32 {
		t.Skip("a cache of 2 GiB")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(128))
	gib := 1 << 30
	c := NewCache(2 * gib)
	calls := 0
	update := func(old []byte, _ bool) ([]byte, bool, int) {
		calls++
		return make([]byte, 2<<20-100), true, 0
	}
	for i := range 2 {
		found, replaced, err := c.Update([]byte("key"), update)
		if found != (i == 1) || !replaced || err != nil || calls != i+1 {
			t.Errorf("found %t, replaced %t, %v, %d calls", found, replaced, err, calls)
		}
	}
	if c.HitCount() != 1 || c.MissCount() != 1 {
		t.Errorf("%d hits, %d misses", c.HitCount(), c.MissCount())
	}
}

// A goroutine that is locked to its thread may use another's iterator, and others may use its.
func TestIteratorAndThreads(t *testing.T) {
	c := NewCache(0)
	c.SetInt(1, nil, 0)
	locked := func(f func()) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			f()
		}()
		<-done
	}
	it := c.NewIterator()
	locked(func() {
		if it.Next() == nil {
			t.Error("no entry")
		}
		it = c.NewIterator()
	})
	for _, want := range []bool{true, false, false} {
		if e := it.Next(); (e != nil) != want {
			t.Errorf("%v, want an entry: %t", e, want)
		}
	}
}

// A Cache that nothing refers to is closed, and none while a method runs or an iterator is in use.
// An iterator that stops early does not hold it.
func TestDropped(t *testing.T) {
	live := func() int { return freehold.Pages().Stats().Live }
	fill := func() *Cache {
		c := NewCache(0)
		for i := range 100 {
			c.Set(fmt.Append(nil, i), []byte(strings.Repeat("x", 100)), 0)
		}
		return c
	}
	kept := fill().NewIterator()
	before := live()
	for i := range 90 {
		it := fill().NewIterator()
		if v, err := fill().GetInt(1); v != nil || err != ErrNotFound {
			t.Fatal(err)
		}
		//lint:ignore SA4000 two entries are read
		if runtime.GC(); it.Next() == nil || it.Next() == nil || kept.Next() == nil {
			t.Fatal("an entry is gone at", i)
		}
	}
	suite.AwaitCollected(t, live, before)
	if kept.Next() == nil {
		t.Fatal("an entry of the iterator is gone")
	}
}
