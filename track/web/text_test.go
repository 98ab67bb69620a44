package web

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/cache"
)

func snapshot() *Snapshot {
	start := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	return &Snapshot{
		Format: Format, Program: "shop", PID: 42, Go: "go1.26", Started: start, Time: start.Add(90 * time.Minute),
		Resident: 2000 << 20, GoMemory: 200 << 20,
		Heaps: []freehold.Stats{
			{Name: "default"},
			{
				Name: "block cache", Live: 1_234_567, LiveBytes: 1200 << 20, Active: 1600 << 20, Resident: 1700 << 20, Committed: 1650 << 20, MaxBytes: 1 << 30,
				Large: 2, LargeBytes: 300 << 10,
				SlowAllocs: 5000, SlowFrees: 4000, Refusals: 3, PurgedBytes: 10 << 20,
				Classes: []freehold.ClassStats{{BlockSize: 64, Live: 1000, Cached: 30, Free: 400, Spans: 3}, {BlockSize: 4096, Live: 12345, Free: 7, Spans: 1600}},
			},
		},
	}
}

func TestText(t *testing.T) {
	const want = `shop, pid 42, go1.26, up 1h30m0s, 2026-03-04 06:36:07
off-heap 1.17 GiB live, at most 1.66 GiB resident; Go 200 MiB; the process 1.95 GiB resident

heap             live     blocks  resident  fragm.  committed     limit  slow allocs  slow frees  refused    purged
default           0 B          0       0 B      0%        0 B         -            0           0        0       0 B
block cache  1.17 GiB  1,234,567  1.66 GiB     25%   1.61 GiB  1.00 GiB        5,000       4,000        3  10.0 MiB

Block sizes of block cache

  block size    live  in caches  free  spans  live bytes
          64   1,000         30   400      3    62.5 KiB
       4,096  12,345          0     7  1,600    48.2 MiB
      larger       2          -     -      -     300 KiB
`
	if got := snapshot().Text(nil, 0); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// A table that is wider than the terminal continues below, without losing a column.
func TestTextFitsATerminal(t *testing.T) {
	s := snapshot()
	s.Budget = &budget.Stats{Source: strings.Repeat("é", 200)}
	s.Accounts = []budget.AccountStats{{Name: "process/" + strings.Repeat("x", 200), Used: 3 << 30, Peak: 5 << 30, Refusals: 30}}
	const heaps = `
heap             live     blocks  resident  fragm.  committed     limit
default           0 B          0       0 B      0%        0 B         -
block cache  1.17 GiB  1,234,567  1.66 GiB     25%   1.61 GiB  1.00 GiB

heap         slow allocs  slow frees  refused    purged
default                0           0        0       0 B
block cache        5,000       4,000        3  10.0 MiB

account  `
	if text := s.Text(nil, 80); !strings.Contains(text, heaps) {
		t.Errorf("no %s in\n%s", heaps, text)
	}
	for _, width := range []int{0, 1, 20, 40, 79, 80, 120, 500} {
		_, text, _ := strings.Cut(s.Text(nil, width), "\n\n")
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(line) - 1; width >= 40 && n > width {
				t.Errorf("width %d: %d in %q", width, n, line)
			}
		}
		for _, column := range []string{"GOGC", "pressure", "short", "purged", "refused", "evicted", "spans", "live bytes"} {
			if !strings.Contains(text, " "+column) {
				t.Errorf("width %d: no %s in\n%s", width, column, text)
			}
		}
		for _, name := range []string{"é…  ", "x…  "} {
			if !strings.Contains(text, name) {
				t.Errorf("width %d: no %s in\n%s", width, name, text)
			}
		}
	}
}

// The head says that the fast path is off, and why.
func TestTextTellsTheSlowPath(t *testing.T) {
	s := snapshot()
	s.Slow = "freehold: small blocks without the fast path: go9 is none"
	if text, _, _ := strings.Cut(s.Text(nil, 0), "\n\n"); !strings.HasSuffix(text, "resident\n"+s.Slow) {
		t.Errorf("got:\n%s", text)
	}
}

// A text of two snapshots has rates. A closed heap makes none negative.
func TestTextHasRates(t *testing.T) {
	before, s := snapshot(), snapshot()
	s.Time = before.Time.Add(2 * time.Second)
	s.Heaps[1].SlowAllocs += 2000
	s.Heaps[1].PurgedBytes += 4 << 20
	s.Heaps[1].SlowFrees = 100
	s.Heaps = append(s.Heaps, freehold.Stats{Name: "new", SlowAllocs: 4})
	text := s.Text(before, 0)
	for _, want := range []string{
		"slow allocs/s  slow frees/s  refused/s  purged/s\n",
		"1.00 GiB          1,000            50          0  2.00 MiB\n",
		"              2             0          0       0 B\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	other := snapshot()
	other.Time = before.Time.Add(-time.Second)
	other.PID++
	later := snapshot()
	restarted := snapshot()
	restarted.Time = before.Time.Add(-time.Second)
	restarted.Started = before.Started.Add(-time.Hour)
	for what, before := range map[string]*Snapshot{"another process": other, "the same moment": later, "an earlier start": restarted} {
		if text := snapshot().Text(before, 0); strings.Contains(text, "/s") {
			t.Errorf("%s: rates in %s", what, text)
		}
	}
}

// Tags and guards have tables if there are any. The table of tags has rates.
func TestTextHasTagsAndGuards(t *testing.T) {
	if text := snapshot().Text(nil, 0); strings.Contains(text, "guards") || strings.Contains(text, "\ntag") {
		t.Errorf("there are none: %s", text)
	}
	before, s := snapshot(), snapshot()
	s.Time = before.Time.Add(2 * time.Second)
	before.Tags = []freehold.TagStats{{Tag: "db", Counts: freehold.Counts{Allocs: 900, Frees: 100}}}
	s.Tags = []freehold.TagStats{
		{Tag: "db", Counts: freehold.Counts{Live: 1800, LiveBytes: 3 << 20, PeakBytes: 4 << 20, Allocs: 2000, Frees: 200}},
		{Tag: "db/\x1b", Counts: freehold.Counts{Allocs: 10, Frees: 10}},
	}
	s.Heaps[1].Guarded, s.Heaps[1].GuardedEver, s.Heaps[1].GuardsSkipped = 1, 3000, 20
	const since = `
tag            live  blocks      peak  allocs  frees
db         3.00 MiB   1,800  4.00 MiB   2,000    200
"db/\x1b"       0 B       0       0 B      10     10

guards of    live   ever  skipped
block cache     1  3,000       20
`
	if text := s.Text(nil, 0); !strings.Contains(text, since) {
		t.Errorf("no %s in %s", since, text)
	}
	for _, want := range []string{"allocs/s  frees/s\n", "4.00 MiB       550       50\n", " 0 B         5        5\n"} {
		if text := s.Text(before, 0); !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
}

// A budget and accounts have tables if there are any. The counters of accounts have rates.
func TestTextHasTheBudgetAndAccounts(t *testing.T) {
	if text := snapshot().Text(nil, 0); strings.Contains(text, "budget") || strings.Contains(text, "account") {
		t.Errorf("there are none: %s", text)
	}
	before, s := snapshot(), snapshot()
	s.Time = before.Time.Add(2 * time.Second)
	s.Budget = &budget.Stats{
		Limit: 6 << 30, Source: "/sys/fs/cgroup/memory.max", Headroom: 512 << 20, Problem: "GOGC is set\x1b",
		OffHeap: 5 << 30, Others: 100 << 20, GoHeld: 200 << 20, GoLimit: 300 << 20, GCPercent: 100, UserGC: true,
		Short: 3 << 20, Pressure: budget.Pressure{Level: budget.Soft},
	}
	before.Accounts = []budget.AccountStats{{Name: "process", Refusals: 10, Evicted: 1 << 20}, {Name: "process/x", Refusals: 100}}
	s.Accounts = []budget.AccountStats{
		{Name: "process", Used: 3 << 30, Peak: 5 << 30, Refusals: 30, Evicted: 5 << 20},
		{Name: "process/x", Used: 1 << 20, Soft: 2 << 20, MaxBytes: 4 << 20, Peak: 3 << 20, Pressure: budget.Pressure{Level: budget.Hard}, Refusals: 6},
	}
	const since = `
budget                                   headroom  off-heap   others       Go  GOMEMLIMIT       GOGC  pressure     short
6.00 GiB from /sys/fs/cgroup/memory.max   512 MiB  5.00 GiB  100 MiB  200 MiB     300 MiB  100 (own)      soft  3.00 MiB
"GOGC is set\x1b"

heap `
	const accounts = `
account        used      soft      hard      peak  pressure  refused   evicted
process    3.00 GiB         -         -  5.00 GiB      calm       30  5.00 MiB
process/x  1.00 MiB  2.00 MiB  4.00 MiB  3.00 MiB      hard        6       0 B
`
	for _, want := range []string{since, accounts} {
		if text := s.Text(nil, 0); !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	// The second account replaces a closed one with the same name.
	for _, want := range []string{"  refused/s  evicted/s\n", "calm         10   2.00 MiB\n", "hard          3        0 B\n"} {
		if text := s.Text(before, 0); !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	s.Budget.GoLimit, s.Budget.GCPercent, s.Budget.Problem = math.MaxInt64, -1, ""
	if text := s.Text(nil, 0); !strings.Contains(text, "  off  off (own) ") || strings.Contains(text, "is set") {
		t.Errorf("no limit: %s", text)
	}
}

// Caches have a table if there are any. The hit ratio is for the interval.
func TestTextHasCaches(t *testing.T) {
	if text := snapshot().Text(nil, 0); strings.Contains(text, "hit ratio") {
		t.Errorf("there are none: %s", text)
	}
	before, s := snapshot(), snapshot()
	s.Time = before.Time.Add(2 * time.Second)
	before.Caches = []cache.Stats{{Name: "carts", Hits: 1, Misses: 100}, {Name: "sessions", Hits: 100, Misses: 90, Loads: 30, LoadsFailed: 4, Refreshes: 2, Sets: 20, Evicted: 10, Expired: 8, Shrunk: 6}}
	s.Caches = []cache.Stats{
		{Name: "sessions", Len: 12_345, Live: 3 << 20, Reserved: 5 << 20, MaxBytes: 8 << 20, Hits: 1000, Misses: 190, Loads: 60, LoadsFailed: 10, Refreshes: 6, Sets: 40, Evicted: 50, Expired: 18, Shrunk: 8},
		{Name: "carts\x1b", MaxBytes: 1 << 20},
		{Name: "cold", MaxBytes: 1 << 20, Misses: 7},
	}
	const since = `
cache        entries      live  reserved     limit   hits  misses  hit ratio  loads  failed  refreshed  sets  evicted  expired  shrunk
sessions      12,345  3.00 MiB  5.00 MiB  8.00 MiB  1,000     190      84.0%     60      10          6    40       50       18       8
"carts\x1b"        0       0 B       0 B  1.00 MiB      0       0          -      0       0          0     0        0        0       0
cold               0       0 B       0 B  1.00 MiB      0       7       0.0%      0       0          0     0        0        0       0
`
	if text := s.Text(nil, 0); !strings.Contains(text, since) {
		t.Errorf("no %s in %s", since, text)
	}
	const rates = `  hits/s  misses/s  hit ratio  loads/s  failed/s  refreshed/s  sets/s  evicted/s  expired/s  shrunk/s
sessions      12,345  3.00 MiB  5.00 MiB  8.00 MiB     450        50      90.0%       15         3            2      10         20          5         1
`
	if text := s.Text(before, 0); !strings.Contains(text, rates) {
		t.Errorf("no %s in %s", rates, text)
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int]string{
		0: "0 B", 1023: "1023 B", 1024: "1.00 KiB", 10_234: "9.99 KiB", 10_240: "10.0 KiB", 102_348: "99.9 KiB", 102_400: "100 KiB",
		1_023_000: "999 KiB", 1_023_999: "0.98 MiB", 1 << 20: "1.00 MiB", 3 << 29: "1.50 GiB",
	} {
		if got := Size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	if got := Size(math.MaxInt); !strings.HasSuffix(got, "iB") || len(got) > 8 {
		t.Errorf("the largest: %s", got)
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", -100: "-100", 12_345_678: "12,345,678"} {
		if got := thousands(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestShortPath(t *testing.T) {
	for path, want := range map[string]string{"a.go": "a.go", "x/a.go": "x/a.go", "/x/a.go": "x/a.go", "/w/x/a.go": "x/a.go", "": ""} {
		if got := shortPath(path); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}
