// What freecache's tests leave out: figures, late reads, and memory that is freed.

package freecache

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/test/suite"
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
		"Get":    {func(c *Cache) ([]byte, error) { return c.Get(key) }, result{"old", nil}, none, figures{hits: 1}, figures{misses: 1, expired: 1}, 0},
		"buffer": {func(c *Cache) ([]byte, error) { return c.GetWithBuf(key, make([]byte, 1, 9)) }, result{"old", nil}, none, figures{hits: 1}, figures{misses: 1, expired: 1}, 0},
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
		"Set":       {func(c *Cache) ([]byte, error) { return nil, c.Set(key, nil, 1) }, result{}, result{}, figures{overwrites: 1}, figures{overwrites: 1}, 1},
		"too large": {func(c *Cache) ([]byte, error) { return nil, c.Set(key, make([]byte, 1000), 1) }, result{"", ErrLargeEntry}, result{"", ErrLargeEntry}, figures{}, figures{}, 1},
		"long key":  {func(c *Cache) ([]byte, error) { return nil, c.Set(make([]byte, 1<<16), nil, 1) }, result{"", ErrLargeKey}, result{"", ErrLargeKey}, figures{}, figures{}, 1},
		"Touch":     {func(c *Cache) ([]byte, error) { return nil, c.Touch(key, 9) }, result{}, none, figures{}, figures{misses: 1, expired: 1}, 0},
		"GetOrSet":  {func(c *Cache) ([]byte, error) { return c.GetOrSet(key, []byte("new"), 1) }, result{"old", nil}, result{}, figures{hits: 1}, figures{misses: 1, expired: 1}, 1},
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
			if c.LookupCount() != row.hits+row.misses || c.HitRate() != float64(row.hits)/float64(max(row.hits+row.misses, 1)) {
				t.Errorf("%s: %d lookups, rate %v", name, c.LookupCount(), c.HitRate())
			}
			if c.Clear(); c.EntryCount() != 0 || c.HitCount() != 0 || c.OverwriteCount() != 0 {
				t.Errorf("%s: after Clear %+v", name, c.total())
			}
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
