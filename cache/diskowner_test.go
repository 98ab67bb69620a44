package cache

import (
	"testing"
	"time"
	"weak"

	"github.com/freehold-go/freehold/internal/disk"
)

// TestOwner: a record is written again only if it has not expired and is still referred to. If a
// region is lost, its records are forgotten, and no others.
func TestOwner(t *testing.T) {
	c := onDisk(t, Options{})
	clock := c.fake()
	keys := []string{"one", "two", "three"}
	for _, key := range keys {
		must(0, c.SetTTL([]byte(key), []byte("value"), 100*time.Second))
		c.toDisk()
	}
	place := func(i int) disk.Place { return c.slotOnDisk(keys[i]).place() }
	o := owner{weak.Make(c)}
	expires := c.clock.fixed(c.clock.expires(100 * time.Second))
	rewrite := func(at disk.Place) bool {
		h := c.seed.Bytes([]byte("one"))
		before := place(0)
		o.Rewrite(at, &disk.Record{Hash: h, Key: []byte("one"), Value: []byte("value"), Meta: disk.Meta{Expires: expires}})
		return place(0) != before
	}
	at := place(0)
	if !rewrite(at) || rewrite(at) {
		t.Error("a record is not written again, or one that is not referred to is")
	}
	get(t, c, "one", "value")
	c.toDisk()
	for i, bounds := range [][2]disk.Place{{place(1) + 1, place(2)}, {place(1), place(1) + 1}, {place(2), place(2) + 1}} {
		o.ForgetRange(bounds[0], bounds[1])
		for n := range keys {
			if want := n == 0 || n > i; c.isOnDisk(keys[n]) != want {
				t.Errorf("after ForgetRange from %d to %d, %q is on disk: %t", bounds[0], bounds[1], keys[n], !want)
			}
		}
	}
	if st := c.Stats().Disk; st.Errors != 2 {
		t.Errorf("%+v", st)
	}
	clock.now += 99 * time.Second
	if !rewrite(place(0)) {
		t.Error("a record is not written again in its last second")
	}
	clock.now += time.Second
	if rewrite(place(0)) {
		t.Error("an expired record is written again")
	}
}
