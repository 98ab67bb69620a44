// Tables: parts of the text that only some programs have.

package web

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/cache"
	"github.com/freehold-go/freehold/metrics"
)

// runningBudget returns the figures of the budget that runs, or nil.
func runningBudget() *budget.Stats {
	b := budget.Running()
	if b == nil {
		return nil
	}
	st := b.Stats()
	return &st
}

// accounts returns all accounts, each right before those below it.
func accounts() []budget.AccountStats {
	all := metrics.Accounts()
	slices.SortStableFunc(all, func(a, b budget.AccountStats) int {
		return slices.CompareFunc(strings.Split(a.Name, "/"), strings.Split(b.Name, "/"), cmp.Compare[string])
	})
	return all
}

// budgetTable returns the budget and its problem, or nil if none runs.
func (s *Snapshot) budgetTable() (t table, problem string) {
	b := s.Budget
	if b == nil {
		return nil, ""
	}
	limit, percent := "off", "off"
	if b.GoLimit != math.MaxInt64 {
		limit = size(b.GoLimit)
	}
	if b.GCPercent >= 0 {
		percent = strconv.Itoa(b.GCPercent)
	}
	return table{
		{"budget", "headroom", "off-heap", "others", "Go", "GOMEMLIMIT", "GOGC", "pressure", "short"},
		{size(b.Limit) + " from " + b.Source, size(b.Headroom), size(b.OffHeap), size(b.Others), size(b.GoHeld),
			limit + users(b.UserLimit), percent + users(b.UserGC), b.Pressure.Level.String(), size(b.Short)},
	}, b.Problem
}

// users marks a setting of the program's own, which the budget leaves alone.
func users(own bool) string {
	if own {
		return " (own)"
	}
	return ""
}

// accountTable returns the accounts, or nil if there are none.
func (s *Snapshot) accountTable(since interval) table {
	if len(s.Accounts) == 0 {
		return nil
	}
	all := table{{"account", "used", "soft", "hard", "peak", "pressure", "refused" + since.per, "evicted" + since.per}}
	for _, st := range s.Accounts {
		was := earlier(since.before.Accounts, func(old budget.AccountStats) bool { return old.Name == st.Name })
		all = append(all, []string{st.Name, size(st.Used), limit(st.Soft), limit(st.MaxBytes), size(st.Peak), st.Pressure.Level.String(),
			thousands(since.rise(st.Refusals, was.Refusals)), Size(since.rise(uint64(st.Evicted), uint64(was.Evicted)))})
	}
	return all
}

// cacheTable returns the caches, or nil if there are none.
func (s *Snapshot) cacheTable(since interval) table {
	if len(s.Caches) == 0 {
		return nil
	}
	all := table{{"cache", "entries", "live", "reserved", "limit", "hits" + since.per, "misses" + since.per, "hit ratio",
		"loads" + since.per, "failed" + since.per, "refreshed" + since.per,
		"sets" + since.per, "evicted" + since.per, "expired" + since.per, "shrunk" + since.per}}
	for _, c := range s.Caches {
		was := earlier(since.before.Caches, func(old cache.Stats) bool { return old.Name == c.Name })
		row := []string{c.Name, thousands(c.Len), Size(c.Live), Size(c.Reserved), limit(int64(c.MaxBytes)),
			thousands(since.rise(c.Hits, was.Hits)), thousands(since.rise(c.Misses, was.Misses)), ratio(c, was)}
		for _, n := range [][2]uint64{
			{c.Loads, was.Loads}, {c.LoadsFailed, was.LoadsFailed}, {c.Refreshes, was.Refreshes},
			{c.Sets, was.Sets}, {c.Evicted, was.Evicted}, {c.Expired, was.Expired}, {c.Shrunk, was.Shrunk},
		} {
			row = append(row, thousands(since.rise(n[0], n[1])))
		}
		all = append(all, row)
	}
	return all
}

// ratio returns the part of a cache's reads that found an entry, or "-" without reads.
func ratio(now, was cache.Stats) string {
	hits, misses := more(now.Hits, was.Hits), more(now.Misses, was.Misses)
	if hits+misses == 0 {
		return "-"
	}
	return strconv.FormatFloat(100*float64(hits)/float64(hits+misses), 'f', 1, 64) + "%"
}

// tagTable returns the tags, which count all calls, or nil if there are none.
func (s *Snapshot) tagTable(since interval) table {
	if len(s.Tags) == 0 {
		return nil
	}
	all := table{{"tag", "live", "blocks", "peak", "allocs" + since.per, "frees" + since.per}}
	for _, t := range s.Tags {
		was := earlier(since.before.Tags, func(old freehold.TagStats) bool { return old.Tag == t.Tag })
		all = append(all, []string{t.Tag, Size(t.LiveBytes), thousands(t.Live), Size(t.PeakBytes),
			thousands(since.rise(t.Allocs, was.Allocs)), thousands(since.rise(t.Frees, was.Frees))})
	}
	return all
}

// guardTable returns the guards of the heaps that have had any, or nil.
func (s *Snapshot) guardTable() table {
	var all table
	for _, st := range s.Heaps {
		if st.GuardedEver == 0 && st.GuardsSkipped == 0 {
			continue
		}
		if all == nil {
			all = table{{"guards of", "live", "ever", "skipped"}}
		}
		all = append(all, []string{st.Name, thousands(st.Guarded), thousands(int(st.GuardedEver)), thousands(int(st.GuardsSkipped))})
	}
	return all
}
