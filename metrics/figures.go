// Figures: the metrics of the exporters, one list for each Stats.

package metrics

import (
	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/cache"
)

// A Figure is one metric of a Stats.
type Figure[S any] struct {
	Name  string // in snake case, without the unit
	Unit  string // By, or the thing that is counted, as in {block}
	Help  string
	Of    string // the value of the label reason, which tells figures of one Name apart; or ""
	Rises bool   // a counter: it falls only when a heap, cache, account or the budget ends
	Limit bool   // 0 means that there is none
	Value func(*S) int64
}

const evictions = "Entries that the cache dropped by itself."

// The figures of a heap, a tag, an account, a cache and the budget. A tag includes the tags below
// it.
var (
	HeapFigures = []Figure[freehold.Stats]{
		{"live", "By", "Memory in live blocks, as the heap rounds them up.", "", false, false, func(st *freehold.Stats) int64 { return int64(st.LiveBytes) }},
		{"live_blocks", "{block}", "Live blocks.", "", false, false, func(st *freehold.Stats) int64 { return int64(st.Live) }},
		{"large", "By", "Memory in live blocks larger than 32 KiB or in whole pages.", "", false, false, func(st *freehold.Stats) int64 { return int64(st.LargeBytes) }},
		{"large_blocks", "{block}", "Live blocks larger than 32 KiB or in whole pages.", "", false, false, func(st *freehold.Stats) int64 { return int64(st.Large) }},
		{"active", "By", "Memory of pages in use.", "", false, false, func(st *freehold.Stats) int64 { return int64(st.Active) }},
		{"resident", "By", "Physical memory, an upper bound.", "", false, false, func(st *freehold.Stats) int64 { return int64(st.Resident) }},
		{"retained", "By", "Reserved addresses without memory.", "", false, false, func(st *freehold.Stats) int64 { return int64(st.Retained) }},
		{"metadata", "By", "Memory of the heap's own bookkeeping.", "", false, false, func(st *freehold.Stats) int64 { return int64(st.Metadata) }},
		{"committed", "By", "Memory of pages that may be resident; it counts against the limit.", "", false, false, func(st *freehold.Stats) int64 { return int64(st.Committed) }},
		{"limit", "By", "Hard limit of the committed memory.", "", false, true, func(st *freehold.Stats) int64 { return int64(st.MaxBytes) }},
		{"slow_allocs", "{call}", "Allocations that missed the caches.", "", true, false, func(st *freehold.Stats) int64 { return int64(st.SlowAllocs) }},
		{"slow_frees", "{call}", "Frees that missed the caches.", "", true, false, func(st *freehold.Stats) int64 { return int64(st.SlowFrees) }},
		{"refusals", "{call}", "Calls that failed for lack of memory.", "", true, false, func(st *freehold.Stats) int64 { return int64(st.Refusals) }},
		{"purged", "By", "Memory returned to the system.", "", true, false, func(st *freehold.Stats) int64 { return int64(st.PurgedBytes) }},
		{"guarded", "{block}", "Live blocks that are guarded.", "", false, false, func(st *freehold.Stats) int64 { return int64(st.Guarded) }},
		{"guards", "{block}", "Blocks that were guarded.", "", true, false, func(st *freehold.Stats) int64 { return int64(st.GuardedEver) }},
		{"skipped_guards", "{block}", "Blocks that were to be guarded, and were not for lack of budget or memory.", "", true, false, func(st *freehold.Stats) int64 { return int64(st.GuardsSkipped) }},
	}
	TagFigures = []Figure[freehold.TagStats]{
		{"live", "By", "Memory in live blocks, as asked for.", "", false, false, func(st *freehold.TagStats) int64 { return int64(st.LiveBytes) }},
		{"live_blocks", "{block}", "Live blocks.", "", false, false, func(st *freehold.TagStats) int64 { return int64(st.Live) }},
		{"peak", "By", "Maximum of the memory in live blocks.", "", false, false, func(st *freehold.TagStats) int64 { return int64(st.PeakBytes) }},
		{"allocs", "{block}", "Blocks allocated.", "", true, false, func(st *freehold.TagStats) int64 { return int64(st.Allocs) }},
		{"frees", "{block}", "Blocks freed.", "", true, false, func(st *freehold.TagStats) int64 { return int64(st.Frees) }},
	}
	AccountFigures = []Figure[budget.AccountStats]{
		{"used", "By", "Memory that counts against the limits: of the account and those below.", "", false, false, func(st *budget.AccountStats) int64 { return st.Used }},
		{"live", "By", "Memory in live blocks of the account's own.", "", false, false, func(st *budget.AccountStats) int64 { return st.LiveBytes }},
		{"live_blocks", "{block}", "Live blocks of the account's own.", "", false, false, func(st *budget.AccountStats) int64 { return int64(st.Live) }},
		{"soft_limit", "By", "Soft limit of the used memory.", "", false, true, func(st *budget.AccountStats) int64 { return st.Soft }},
		{"limit", "By", "Hard limit of the used memory.", "", false, true, func(st *budget.AccountStats) int64 { return st.MaxBytes }},
		{"pressure", "{level}", "How short memory is: 0 calm, 1 soft, 2 hard.", "", false, false, func(st *budget.AccountStats) int64 { return int64(st.Pressure.Level) }},
		{"refusals", "{call}", "Requests that the account had no room for.", "", true, false, func(st *budget.AccountStats) int64 { return int64(st.Refusals) }},
		{"evicted", "By", "Memory that functions of AllocOrEvict have freed.", "", true, false, func(st *budget.AccountStats) int64 { return st.Evicted }},
	}
	CacheFigures = []Figure[cache.Stats]{
		{"entries", "{entry}", "Entries, with those that have expired and were not dropped yet.", "", false, false, func(st *cache.Stats) int64 { return int64(st.Len) }},
		{"live", "By", "Memory of entries with their heads.", "", false, false, func(st *cache.Stats) int64 { return int64(st.Live) }},
		{"dead", "By", "Memory of replaced and deleted entries until it is reclaimed.", "", false, false, func(st *cache.Stats) int64 { return int64(st.Dead) }},
		{"index", "By", "Memory of the index.", "", false, false, func(st *cache.Stats) int64 { return int64(st.Index) }},
		{"index_slots", "{slot}", "Slots of the index, one for each entry.", "", false, false, func(st *cache.Stats) int64 { return int64(st.Slots) }},
		{"reserved", "By", "Memory from the parent and bookkeeping on the Go heap.", "", false, false, func(st *cache.Stats) int64 { return int64(st.Reserved) }},
		{"limit", "By", "Bound of the reserved memory.", "", false, true, func(st *cache.Stats) int64 { return int64(st.MaxBytes) }},
		{"hits", "{read}", "Reads that found an entry.", "", true, false, func(st *cache.Stats) int64 { return int64(st.Hits) }},
		{"misses", "{read}", "Reads that found none.", "", true, false, func(st *cache.Stats) int64 { return int64(st.Misses) }},
		{"undecodable", "{read}", "Misses that found a value that its codec does not decode.", "", true, false, func(st *cache.Stats) int64 { return int64(st.Undecodable) }},
		{"loads", "{key}", "Keys that a load was asked for.", "", true, false, func(st *cache.Stats) int64 { return int64(st.Loads) }},
		{"loads_failed", "{key}", "Keys whose load failed.", "", true, false, func(st *cache.Stats) int64 { return int64(st.LoadsFailed) }},
		{"refreshes", "{key}", "Keys loaded again in the background.", "", true, false, func(st *cache.Stats) int64 { return int64(st.Refreshes) }},
		{"sets", "{entry}", "Entries stored.", "", true, false, func(st *cache.Stats) int64 { return int64(st.Sets) }},
		{"evictions", "{entry}", evictions, cache.Room.String(), true, false, func(st *cache.Stats) int64 { return int64(st.Evicted) }},
		{"evictions", "{entry}", evictions, cache.Expired.String(), true, false, func(st *cache.Stats) int64 { return int64(st.Expired) }},
		{"evictions", "{entry}", evictions, cache.Shrunk.String(), true, false, func(st *cache.Stats) int64 { return int64(st.Shrunk) }},
		{"copied", "By", "Memory of entries that reclaiming moved.", "", true, false, func(st *cache.Stats) int64 { return int64(st.Copied) }},
	}
	BudgetFigures = []Figure[budget.Stats]{
		{"limit", "By", "The process's memory limit.", "", false, false, func(st *budget.Stats) int64 { return st.Limit }},
		{"headroom", "By", "The part of the limit that is left free.", "", false, false, func(st *budget.Stats) int64 { return st.Headroom }},
		{"off_heap", "By", "Memory that all heaps have committed.", "", false, false, func(st *budget.Stats) int64 { return st.OffHeap }},
		{"others", "By", "Resident memory that neither Go nor a heap has.", "", false, false, func(st *budget.Stats) int64 { return st.Others }},
		{"go_held", "By", "Memory that Go's memory limit counts.", "", false, false, func(st *budget.Stats) int64 { return st.GoHeld }},
		{"go_live", "By", "Memory that the last collection found live.", "", false, false, func(st *budget.Stats) int64 { return st.GoLive }},
		{"go_limit", "By", "Go's memory limit; the largest int64 is none.", "", false, false, func(st *budget.Stats) int64 { return st.GoLimit }},
		{"short", "By", "Bytes by which off-heap memory, others and the least that Go needs pass the limit less the headroom.", "", false, false, func(st *budget.Stats) int64 { return st.Short }},
		{"pressure", "{level}", "How short memory is: 0 calm, 1 soft, 2 hard.", "", false, false, func(st *budget.Stats) int64 { return int64(st.Pressure.Level) }},
		{"wanted", "By", "Memory that should become free for the pressure to be calm.", "", false, false, func(st *budget.Stats) int64 { return st.Pressure.Wanted }},
		{"adjustments", "{change}", "Changes of Go's memory limit and GOGC.", "", true, false, func(st *budget.Stats) int64 { return int64(st.Adjustments) }},
		{"reclaims", "{collection}", "Collections that the budget ran, as Go held more than it may.", "", true, false, func(st *budget.Stats) int64 { return int64(st.Reclaims) }},
		{"rounds", "{round}", "Rounds in which heaps were trimmed and callbacks called.", "", true, false, func(st *budget.Stats) int64 { return int64(st.Rounds) }},
	}
)
