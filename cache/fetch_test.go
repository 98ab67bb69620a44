package cache

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestAbsentBesideDisk: a call that may read the disk replaces the item of a key without a value.
func TestAbsentBesideDisk(t *testing.T) {
	c := onDisk(t, Options{Negative: time.Hour})
	c.GetOrLoad(t.Context(), nil, []byte("key"), func(context.Context) (Entry, error) { return Entry{}, ErrNotFound })
	if added := must(c.Add([]byte("key"), Entry{})); !added || c.Stats().Len != 1 {
		t.Errorf("added %t, %+v", added, c.Stats())
	}
	c.check()
}

// TestHugeOnDisk: a read of an entry on disk that is huge in memory drops no other entry.
func TestHugeOnDisk(t *testing.T) {
	c := onDisk(t, Options{})
	huge := make([]byte, c.MaxEntry()*9/10)
	must(0, c.Set([]byte("huge"), huge))
	c.toDisk()
	for n := range 100 {
		must(0, c.Set(fmt.Append(nil, "key ", n), make([]byte, 1000)))
	}
	before := c.Stats()
	get(t, c, "huge", string(huge))
	if st := c.Stats(); st.Len != before.Len || c.isInMemory("huge") || st.Disk.Hits != 1 {
		t.Errorf("%+v, before %+v", st, before)
	}
}

// TestRefreshOnDisk: an entry that memory has no room for is loaded again when it is due.
func TestRefreshOnDisk(t *testing.T) {
	c := onDisk(t, Options{RefreshAfter: 10 * time.Second})
	clock := c.fake()
	old := strings.Repeat("old ", 25_000)
	must(0, c.Set([]byte("key"), []byte(old)))
	c.toDisk()
	for _, want := range []string{old, old, old, "new"} {
		got := must(c.GetOrLoad(t.Context(), nil, []byte("key"), func(context.Context) (Entry, error) {
			if clock.now < 10*time.Second {
				t.Error("it is loaded too early")
			}
			return Entry{Value: []byte("new")}, nil
		}))
		c.refreshes.wait()
		if string(got) != want {
			t.Errorf("%.10q, want %.10q", got, want)
		}
		clock.now += 6 * time.Second
	}
}

// TestGetContext: a ctx that is done ends a read of the disk, and no read of memory.
func TestGetContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := onDisk(t, Options{})
	for _, key := range []string{"memory", "disk", "both"} {
		must(0, c.Set([]byte(key), []byte("value")))
	}
	c.toDisk()
	must(0, c.Set([]byte("memory"), []byte("value")))
	for _, done := range []bool{false, true} {
		for key, want := range map[string]struct {
			value string
			err   error
		}{"memory": {"value", nil}, "both": {"value", nil}, "disk": {"", context.Canceled}, "none": {"", nil}} {
			if key == "disk" && !done {
				continue
			}
			before := c.Stats()
			got, ok, err := c.GetContext(ctx, []byte("x"), []byte(key))
			if string(got) != "x"+want.value || ok != (want.value != "") || err != want.err {
				t.Errorf("done %t: %q has %q, %t, %v", done, key, got, ok, err)
			}
			if st := c.Stats(); err != nil && (st.Hits != before.Hits || st.Misses != before.Misses) {
				t.Errorf("%+v, before %+v", st, before)
			}
		}
		cancel()
	}
	if got, ok, err := c.GetContext(context.Background(), nil, []byte("disk")); string(got) != "value" || !ok || err != nil {
		t.Errorf("%q, %t, %v", got, ok, err)
	}
	c.check()
}

// TestValidateGivesUp: a call that finds other slots after each read of the disk forgets them in the
// end.
func TestValidateGivesUp(t *testing.T) {
	c := onDisk(t, Options{})
	must(0, c.Set([]byte("key"), []byte("value")))
	c.toDisk()
	s, h := &c.shards[0], c.seed.Bytes([]byte("key"))
	s.mu.Lock()
	defer s.mu.Unlock()
	for tries := range mostTries + 1 {
		r, _, ok := s.tier.validate(h, &diskCopy{}, tries)
		if gaveUp := tries == mostTries; r.it != nil || ok != gaveUp || s.tier.has(h) == gaveUp || (s.tier.evicted == 1) != gaveUp {
			t.Errorf("try %d: %t, has a slot: %t, %d evicted", tries, ok, s.tier.has(h), s.tier.evicted)
		}
	}
}
