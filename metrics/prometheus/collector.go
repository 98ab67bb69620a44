// Collector: the figures of heaps and caches for Prometheus.

// Package prometheus exports the figures of heaps and caches to Prometheus:
//
//	import freeholdmetrics "github.com/freehold-go/freehold/metrics/prometheus"
//
//	prometheus.MustRegister(freeholdmetrics.NewCollector())
//
// Each metric has the label heap, HeapOptions.Name:
//
//	freehold_heap_live_blocks
//	freehold_heap_live_bytes
//	freehold_heap_large_blocks
//	freehold_heap_large_bytes
//	freehold_heap_active_bytes
//	freehold_heap_resident_bytes
//	freehold_heap_retained_bytes
//	freehold_heap_metadata_bytes
//	freehold_heap_committed_bytes
//	freehold_heap_limit_bytes           only with HeapOptions.MaxBytes
//	freehold_heap_slow_allocs_total
//	freehold_heap_slow_frees_total
//	freehold_heap_refusals_total
//	freehold_heap_purged_bytes_total
//	freehold_heap_guarded_blocks
//	freehold_heap_guards_total
//	freehold_heap_guards_skipped_total
//
// They are the fields of [freehold.Stats]. Heaps of one name are added up, as package metrics says.
// An alarm for a heap near its limit:
//
//	freehold_heap_committed_bytes / freehold_heap_limit_bytes > 0.9
//
// These have the label tag, such as db/cache, and are from [freehold.AllTags]. They count every
// call. Do not add up db and db/cache: a tag includes the tags below it.
//
//	freehold_tag_live_blocks
//	freehold_tag_live_bytes
//	freehold_tag_peak_bytes
//	freehold_tag_allocs_total
//	freehold_tag_frees_total
//
// These have the label account, with the names above it: process/search/tenant. They are fields of
// [budget.AccountStats]. Accounts of one name are added up:
//
//	freehold_account_used_bytes
//	freehold_account_live_blocks
//	freehold_account_live_bytes
//	freehold_account_soft_limit_bytes   only with a soft limit
//	freehold_account_limit_bytes        only with a hard limit
//	freehold_account_pressure           0 calm, 1 soft, 2 hard
//	freehold_account_refusals_total
//	freehold_account_evicted_bytes_total
//
// An account's own heap is among the heaps too. The heap's limit is the lowest limit of the account
// and the accounts above it. freehold_account_used_bytes counts against the account's own limit.
//
// These have the label cache, cache.Options.Name. They are the fields of [cache.Stats], by
// metrics.Caches:
//
//	freehold_cache_entries
//	freehold_cache_live_bytes
//	freehold_cache_dead_bytes
//	freehold_cache_index_bytes
//	freehold_cache_index_slots
//	freehold_cache_reserved_bytes
//	freehold_cache_limit_bytes
//	freehold_cache_hits_total
//	freehold_cache_misses_total
//	freehold_cache_undecodable_total
//	freehold_cache_loads_total
//	freehold_cache_loads_failed_total
//	freehold_cache_refreshes_total
//	freehold_cache_sets_total
//	freehold_cache_evictions_total      with the label reason: room, expired or shrunk
//	freehold_cache_copied_bytes_total
//
// The share of reads that found their entry:
//
//	rate(freehold_cache_hits_total[5m]) /
//	  (rate(freehold_cache_hits_total[5m]) + rate(freehold_cache_misses_total[5m]))
//
// These have no label. They are the fields of [budget.Stats], while a budget runs:
//
//	freehold_budget_limit_bytes
//	freehold_budget_headroom_bytes
//	freehold_budget_off_heap_bytes
//	freehold_budget_others_bytes
//	freehold_budget_go_held_bytes
//	freehold_budget_go_live_bytes
//	freehold_budget_go_limit_bytes
//	freehold_budget_short_bytes
//	freehold_budget_pressure            0 calm, 1 soft, 2 hard
//	freehold_budget_wanted_bytes
//	freehold_budget_adjustments_total
//	freehold_budget_reclaims_total
//	freehold_budget_rounds_total
//
// An alarm for a process that may be killed:
//
//	min_over_time(freehold_budget_pressure[1m]) == 2
package prometheus

import (
	"cmp"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/metrics"
	"github.com/prometheus/client_golang/prometheus"
)

// A figure is one metric, with a label such as the heap's name, or without one for the budget.
type figure[S any] struct {
	metrics.Figure[S]
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// names has the names that do not follow from a figure's name and unit.
var names = map[string]string{
	"freehold_heap_guarded":              "freehold_heap_guarded_blocks",
	"freehold_heap_skipped_guards_total": "freehold_heap_guards_skipped_total",
}

func figuresOf[S any](of string, labels []string, figures []metrics.Figure[S]) (all []figure[S]) {
	for _, f := range figures {
		name, kind := "freehold_"+of+"_"+f.Name, prometheus.GaugeValue
		if f.Unit == "By" {
			name += "_bytes"
		}
		if f.Rises {
			name, kind = name+"_total", prometheus.CounterValue
		}
		name = cmp.Or(names[name], name)
		var reason prometheus.Labels
		if f.Of != "" {
			reason = prometheus.Labels{"reason": f.Of}
		}
		all = append(all, figure[S]{f, prometheus.NewDesc(name, f.Help, labels, reason), kind})
	}
	return all
}

var (
	ofHeaps    = figuresOf("heap", []string{"heap"}, metrics.HeapFigures)
	ofTags     = figuresOf("tag", []string{"tag"}, metrics.TagFigures)
	ofAccounts = figuresOf("account", []string{"account"}, metrics.AccountFigures)
	ofCaches   = figuresOf("cache", []string{"cache"}, metrics.CacheFigures)
	ofBudget   = figuresOf("budget", nil, metrics.BudgetFigures)
)

type collector struct{}

// NewCollector returns a collector of all heaps, tags, accounts and caches of the process, later
// ones too, and of the running budget. Register it once. Collecting costs a call of Stats,
// microseconds, for each heap, account and cache. The collector is safe for concurrent use.
func NewCollector() prometheus.Collector { return collector{} }

func (collector) Describe(to chan<- *prometheus.Desc) {
	describe(ofHeaps, to)
	describe(ofTags, to)
	describe(ofAccounts, to)
	describe(ofCaches, to)
	describe(ofBudget, to)
}

func describe[S any](figures []figure[S], to chan<- *prometheus.Desc) {
	for _, f := range figures {
		to <- f.desc
	}
}

func (collector) Collect(to chan<- prometheus.Metric) {
	for _, st := range metrics.ByName() {
		collect(ofHeaps, &st, to, st.Name)
	}
	for _, st := range freehold.AllTags() {
		collect(ofTags, &st, to, st.Tag)
	}
	for _, st := range metrics.Accounts() {
		collect(ofAccounts, &st, to, st.Name)
	}
	for _, st := range metrics.Caches() {
		collect(ofCaches, &st, to, st.Name)
	}
	if b := budget.Running(); b != nil {
		st := b.Stats()
		collect(ofBudget, &st, to)
	}
}

func collect[S any](figures []figure[S], st *S, to chan<- prometheus.Metric, labels ...string) {
	for _, f := range figures {
		if n := f.Value(st); n != 0 || !f.Limit {
			to <- prometheus.MustNewConstMetric(f.desc, f.kind, float64(n), labels...)
		}
	}
}
