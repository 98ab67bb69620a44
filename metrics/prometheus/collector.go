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
package prometheus

import (
	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/metrics"
	"github.com/prometheus/client_golang/prometheus"
)

// A figure is one metric of what a label tells apart: heaps or tags.
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

func figureOf[S any, N int | uint64](label, name, help string, kind prometheus.ValueType, value func(*S) N) figure[S] {
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

type collector struct{}

// NewCollector returns a collector of all heaps and tags of the process, those that are made later
// too. Register it once. Collecting costs a call of Stats for each heap, microseconds. It may be called by
// several goroutines.
func NewCollector() prometheus.Collector { return collector{} }

func (collector) Describe(to chan<- *prometheus.Desc) {
	for _, f := range append(figures, limit) {
		to <- f.desc
	}
	for _, f := range tagFigures {
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
}

func (f figure[S]) collect(of *S, name string, to chan<- prometheus.Metric) {
	to <- prometheus.MustNewConstMetric(f.desc, f.kind, f.value(of), name)
}
