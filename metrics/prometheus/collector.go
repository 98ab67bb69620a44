// Collector: the figures of heaps for Prometheus.

// Package prometheus exports the figures of heaps to Prometheus:
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
// They are the fields of [freehold.Stats]. Heaps of one name are added up, see package metrics. An
// alarm for a limit that is near:
//
//	freehold_heap_committed_bytes / freehold_heap_limit_bytes > 0.9
//
// These have the label tag, such as db/cache, and are of [freehold.AllTags]. They count every
// call. Do not add db and db/cache up, as a tag includes those below it:
//
//	freehold_tag_live_blocks
//	freehold_tag_live_bytes
//	freehold_tag_peak_bytes
//	freehold_tag_allocs_total
//	freehold_tag_frees_total
//
// These have the label account, with the names above it: process/search/tenant. They are fields of
// [budget.AccountStats]; a name is of one account, or of several that are added up:
//
//	freehold_account_used_bytes
//	freehold_account_reserved_bytes
//	freehold_account_live_blocks
//	freehold_account_live_bytes
//	freehold_account_soft_limit_bytes   only with a soft limit
//	freehold_account_limit_bytes        only with a hard limit
//	freehold_account_pressure           0 calm, 1 soft, 2 hard
//	freehold_account_refusals_total
//	freehold_account_evicted_bytes_total
//
// An account's own heap is among the heaps too. Its limit there is the lowest of the account's and those
// above. What counts against the account's is freehold_account_used_bytes.
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
	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/metrics"
	"github.com/prometheus/client_golang/prometheus"
)

// A figure is one metric of what a label tells apart, heaps, tags or accounts, or of the budget.
type figure[S any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*S) float64
}

func gauge(name, help string, value func(*freehold.Stats) int) figure[freehold.Stats] {
	return figureOf("heap", name, help, prometheus.GaugeValue, value)
}

func counter(name, help string, value func(*freehold.Stats) uint64) figure[freehold.Stats] {
	return figureOf("heap", name, help, prometheus.CounterValue, value)
}

func figureOf[S any, N int | int64 | uint64](label, name, help string, kind prometheus.ValueType, value func(*S) N) figure[S] {
	desc := prometheus.NewDesc("freehold_"+label+"_"+name, help, []string{label}, nil)
	return figure[S]{desc, kind, func(of *S) float64 { return float64(value(of)) }}
}

var figures = []figure[freehold.Stats]{
	gauge("live_blocks", "Live blocks.", func(st *freehold.Stats) int { return st.Live }),
	gauge("live_bytes", "Bytes in live blocks, as the heap rounds them up.", func(st *freehold.Stats) int { return st.LiveBytes }),
	gauge("large_blocks", "Live blocks larger than 32 KiB or in whole pages.", func(st *freehold.Stats) int { return st.Large }),
	gauge("large_bytes", "Bytes in live blocks larger than 32 KiB or in whole pages.", func(st *freehold.Stats) int { return st.LargeBytes }),
	gauge("active_bytes", "Bytes of pages in use.", func(st *freehold.Stats) int { return st.Active }),
	gauge("resident_bytes", "Physical memory in bytes, an upper bound.", func(st *freehold.Stats) int { return st.Resident }),
	gauge("retained_bytes", "Bytes of reserved addresses without memory.", func(st *freehold.Stats) int { return st.Retained }),
	gauge("metadata_bytes", "Bytes of the heap's own bookkeeping.", func(st *freehold.Stats) int { return st.Metadata }),
	gauge("committed_bytes", "Bytes of pages that may hold memory, which the limit is for.", func(st *freehold.Stats) int { return st.Committed }),
	counter("slow_allocs_total", "Allocations that missed the caches, and all of large blocks.", func(st *freehold.Stats) uint64 { return st.SlowAllocs }),
	counter("slow_frees_total", "Frees that missed the caches, and all of large blocks.", func(st *freehold.Stats) uint64 { return st.SlowFrees }),
	counter("refusals_total", "Calls that failed for lack of memory.", func(st *freehold.Stats) uint64 { return st.Refusals }),
	counter("purged_bytes_total", "Bytes returned to the system.", func(st *freehold.Stats) uint64 { return st.PurgedBytes }),
	gauge("guarded_blocks", "Live blocks that are guarded.", func(st *freehold.Stats) int { return st.Guarded }),
	counter("guards_total", "Blocks that were guarded.", func(st *freehold.Stats) uint64 { return st.GuardedEver }),
	counter("guards_skipped_total", "Blocks that were to be guarded, and were not for lack of budget or memory.", func(st *freehold.Stats) uint64 { return st.GuardsSkipped }),
}

var limit = gauge("limit_bytes", "Hard limit of the committed bytes.", func(st *freehold.Stats) int { return st.MaxBytes })

var tagFigures = []figure[freehold.TagStats]{
	figureOf("tag", "live_blocks", "Live blocks.", prometheus.GaugeValue, func(t *freehold.TagStats) int { return t.Live }),
	figureOf("tag", "live_bytes", "Bytes in live blocks, as asked for.", prometheus.GaugeValue, func(t *freehold.TagStats) int { return t.LiveBytes }),
	figureOf("tag", "peak_bytes", "Maximum of the bytes in live blocks.", prometheus.GaugeValue, func(t *freehold.TagStats) int { return t.PeakBytes }),
	figureOf("tag", "allocs_total", "Blocks allocated.", prometheus.CounterValue, func(t *freehold.TagStats) uint64 { return t.Allocs }),
	figureOf("tag", "frees_total", "Blocks freed.", prometheus.CounterValue, func(t *freehold.TagStats) uint64 { return t.Frees }),
}

func budgetFigure[N int64 | uint64 | budget.Level](name, help string, kind prometheus.ValueType, value func(*budget.Stats) N) figure[budget.Stats] {
	desc := prometheus.NewDesc("freehold_budget_"+name, help, nil, nil)
	return figure[budget.Stats]{desc, kind, func(st *budget.Stats) float64 { return float64(value(st)) }}
}

var budgetFigures = []figure[budget.Stats]{
	budgetFigure("limit_bytes", "The process's memory limit.", prometheus.GaugeValue, func(st *budget.Stats) int64 { return st.Limit }),
	budgetFigure("headroom_bytes", "The part of the limit that is left free.", prometheus.GaugeValue, func(st *budget.Stats) int64 { return st.Headroom }),
	budgetFigure("off_heap_bytes", "Bytes that all heaps have committed.", prometheus.GaugeValue, func(st *budget.Stats) int64 { return st.OffHeap }),
	budgetFigure("others_bytes", "Resident bytes that neither Go nor a heap has.", prometheus.GaugeValue, func(st *budget.Stats) int64 { return st.Others }),
	budgetFigure("go_held_bytes", "Bytes that Go's memory limit counts.", prometheus.GaugeValue, func(st *budget.Stats) int64 { return st.GoHeld }),
	budgetFigure("go_live_bytes", "Bytes that the last collection found live.", prometheus.GaugeValue, func(st *budget.Stats) int64 { return st.GoLive }),
	budgetFigure("go_limit_bytes", "Go's memory limit; the largest int64 is none.", prometheus.GaugeValue, func(st *budget.Stats) int64 { return st.GoLimit }),
	budgetFigure("short_bytes", "Bytes by which what must be there passes the limit less the headroom.", prometheus.GaugeValue, func(st *budget.Stats) int64 { return st.Short }),
	budgetFigure("pressure", "How short memory is: 0 calm, 1 soft, 2 hard.", prometheus.GaugeValue, func(st *budget.Stats) budget.Level { return st.Pressure.Level }),
	budgetFigure("wanted_bytes", "Bytes that should become free for the pressure to be calm.", prometheus.GaugeValue, func(st *budget.Stats) int64 { return st.Pressure.Wanted }),
	budgetFigure("adjustments_total", "Changes of Go's memory limit and GOGC.", prometheus.CounterValue, func(st *budget.Stats) uint64 { return st.Adjustments }),
	budgetFigure("reclaims_total", "Collections that the budget ran, as Go held more than it may.", prometheus.CounterValue, func(st *budget.Stats) uint64 { return st.Reclaims }),
	budgetFigure("rounds_total", "Rounds in which heaps were trimmed and callbacks called.", prometheus.CounterValue, func(st *budget.Stats) uint64 { return st.Rounds }),
}

var accountFigures = []figure[budget.AccountStats]{
	figureOf("account", "used_bytes", "Bytes that count against the limits: of the account, those below, and reservations.", prometheus.GaugeValue, func(st *budget.AccountStats) int64 { return st.Used }),
	figureOf("account", "reserved_bytes", "Bytes of reservations that are not in use.", prometheus.GaugeValue, func(st *budget.AccountStats) int64 { return st.Reserved }),
	figureOf("account", "live_blocks", "Live blocks of the account's own.", prometheus.GaugeValue, func(st *budget.AccountStats) int { return st.Live }),
	figureOf("account", "live_bytes", "Bytes in live blocks of the account's own.", prometheus.GaugeValue, func(st *budget.AccountStats) int64 { return st.LiveBytes }),
	figureOf("account", "pressure", "How short memory is: 0 calm, 1 soft, 2 hard.", prometheus.GaugeValue, func(st *budget.AccountStats) int { return int(st.Pressure.Level) }),
	figureOf("account", "refusals_total", "Requests that the account had no room for.", prometheus.CounterValue, func(st *budget.AccountStats) uint64 { return st.Refusals }),
	figureOf("account", "evicted_bytes_total", "Bytes that functions of AllocOrEvict have freed.", prometheus.CounterValue, func(st *budget.AccountStats) int64 { return st.Evicted }),
}

var (
	softLimit = figureOf("account", "soft_limit_bytes", "Soft limit of the used bytes.", prometheus.GaugeValue, func(st *budget.AccountStats) int64 { return st.Soft })
	hardLimit = figureOf("account", "limit_bytes", "Hard limit of the used bytes.", prometheus.GaugeValue, func(st *budget.AccountStats) int64 { return st.Hard })
)

type collector struct{}

// NewCollector returns a collector of all heaps, tags and accounts of the process, those that are made later
// too, and of the budget that runs. Register it once. Collecting costs a call of Stats for each heap, microseconds. It may be called by
// several goroutines.
func NewCollector() prometheus.Collector { return collector{} }

func (collector) Describe(to chan<- *prometheus.Desc) {
	for _, f := range append(figures, limit) {
		to <- f.desc
	}
	for _, f := range tagFigures {
		to <- f.desc
	}
	for _, f := range append(accountFigures, softLimit, hardLimit) {
		to <- f.desc
	}
	for _, f := range budgetFigures {
		to <- f.desc
	}
}

func (collector) Collect(to chan<- prometheus.Metric) {
	for _, st := range metrics.ByName() {
		for _, f := range figures {
			f.collect(&st, st.Name, to)
		}
		if st.MaxBytes > 0 {
			limit.collect(&st, st.Name, to)
		}
	}
	for _, t := range freehold.AllTags() {
		for _, f := range tagFigures {
			f.collect(&t, t.Tag, to)
		}
	}
	for _, st := range metrics.Accounts() {
		for _, f := range accountFigures {
			f.collect(&st, st.Name, to)
		}
		if st.Soft > 0 {
			softLimit.collect(&st, st.Name, to)
		}
		if st.Hard > 0 {
			hardLimit.collect(&st, st.Name, to)
		}
	}
	if b := budget.Running(); b != nil {
		st := b.Stats()
		for _, f := range budgetFigures {
			to <- prometheus.MustNewConstMetric(f.desc, f.kind, f.value(&st))
		}
	}
}

func (f figure[S]) collect(of *S, name string, to chan<- prometheus.Metric) {
	to <- prometheus.MustNewConstMetric(f.desc, f.kind, f.value(of), name)
}
