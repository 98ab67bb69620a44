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
//
// They are the fields of [freehold.Stats]. Heaps of one name are added up, see package metrics. An
// alarm for a limit that is near:
//
//	freehold_heap_committed_bytes / freehold_heap_limit_bytes > 0.9
package prometheus

import (
	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/metrics"
	"github.com/prometheus/client_golang/prometheus"
)

// A figure is one metric of a heap.
type figure struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*freehold.Stats) float64
}

func gauge(name, help string, value func(*freehold.Stats) int) figure {
	return figure{describe(name, help), prometheus.GaugeValue, func(st *freehold.Stats) float64 { return float64(value(st)) }}
}

func counter(name, help string, value func(*freehold.Stats) uint64) figure {
	return figure{describe(name, help), prometheus.CounterValue, func(st *freehold.Stats) float64 { return float64(value(st)) }}
}

func describe(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("freehold_heap_"+name, help, []string{"heap"}, nil)
}

var figures = []figure{
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
}

var limit = gauge("limit_bytes", "Hard limit of the committed bytes.", func(st *freehold.Stats) int { return st.MaxBytes })

type collector struct{}

// NewCollector returns a collector of all heaps of the process, those that are made later
// too. Register it once. Collecting costs a call of Stats for each heap, microseconds. It may be called by
// several goroutines.
func NewCollector() prometheus.Collector { return collector{} }

func (collector) Describe(to chan<- *prometheus.Desc) {
	for _, f := range append(figures, limit) {
		to <- f.desc
	}
}

func (collector) Collect(to chan<- prometheus.Metric) {
	for _, st := range metrics.ByName() {
		for _, f := range figures {
			f.collect(&st, to)
		}
		if st.MaxBytes > 0 {
			limit.collect(&st, to)
		}
	}
}

func (f figure) collect(st *freehold.Stats, to chan<- prometheus.Metric) {
	to <- prometheus.MustNewConstMetric(f.desc, f.kind, f.value(st), st.Name)
}
