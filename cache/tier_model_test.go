package cache

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/freehold-go/freehold/alloctest"
	"github.com/freehold-go/freehold/internal/hash"
)

// restart closes the cache of a model and opens it again. Entries that were on disk are there,
// unless it was killed.
func (m *model) restart(killed bool) {
	m.reads += m.c.Stats().Disk.Hits
	left := -int(m.c.Stats().Disk.Evicted) // that leave the disk meanwhile
	for key := range m.want {
		h := m.c.seed.Bytes([]byte(key))
		s := m.c.shardOf(h)
		if killed || !s.tier.has(h) {
			delete(m.want, key)
		}
	}
	o, begin, now := m.c.options, m.c.clock.begin, m.clock.now
	m.c.Close()
	left += int(m.c.Stats().Disk.Evicted)
	if killed {
		if err := os.Remove(filepath.Join(o.Disk.Dir, "freehold.disk.index")); err != nil {
			m.t.Fatal(err)
		}
	}
	m.open(o)
	m.lost -= left
	m.c.clock.begin = begin
	m.clock = m.c.fake()
	m.clock.now = now
	if st := m.c.Stats().Disk; st.Off != nil || killed && st.Items > 0 {
		m.t.Fatalf("%+v", st)
	}
}

// sameSeed gives a cache that is empty the same seed in each run, so that equal tags are too.
func (c *Cache) sameSeed(n uint64) {
	c.seed = hash.SeedOf([3]uint64{n * 0x9E3779B97F4A7C15, n * 0xD1B54A32D192ED03, n * 0x8CB92BA72F3D8DD7})
}

// TestProgramsOnDisk: nearly all entries are on disk, and all calls mean the same. An entry may only
// leave the disk, which is counted. Restarts keep the entries on disk, and kills lose them.
func TestProgramsOnDisk(t *testing.T) {
	for name, o := range map[string]Options{
		"small":    {MaxBytes: MinBytes},
		"accessed": {MaxBytes: 5 * MinBytes, Access: true, RefreshAfter: 1 << 40},
		"shards":   {MaxBytes: 9 << 20},
		"sliding":  {MaxBytes: MinBytes, TTL: 100 * time.Second, Sliding: true},
		"expiry":   {MaxBytes: 5 * MinBytes, Expiry: expiryOfModel},
	} {
		t.Run(name, func(t *testing.T) {
			o.Disk = &Disk{Dir: t.TempDir(), MaxBytes: 8 << 20}
			m := newModel(t, alloctest.New(t), o)
			defer func() { m.c.Close() }()
			m.c.sameSeed(1)
			steps := 20_000
			if testing.Short() {
				steps = 1_000
			}
			m.run(program(uint64(o.MaxBytes), steps))
			st := m.c.Stats()
			t.Logf("%+v", st)
			if m.reads+st.Disk.Hits == 0 {
				t.Errorf("nothing was read on disk: %+v", st.Disk)
			}
		})
	}
}
