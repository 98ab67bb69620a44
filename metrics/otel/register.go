// Register: the figures of heaps for OpenTelemetry.

// Package otel exports the figures of heaps to OpenTelemetry:
//
//	import freeholdmetrics "github.com/freehold-go/freehold/metrics/otel"
//
//	_, err := freeholdmetrics.Register(otel.Meter("example.com/myservice"))
//
// Each metric has the attribute freehold.heap.name, HeapOptions.Name:
//
//	freehold.heap.live           By
//	freehold.heap.live_blocks    {block}
//	freehold.heap.large          By
//	freehold.heap.large_blocks   {block}
//	freehold.heap.active         By
//	freehold.heap.resident       By
//	freehold.heap.retained       By
//	freehold.heap.metadata       By
//	freehold.heap.committed      By
//	freehold.heap.limit          By        only with HeapOptions.MaxBytes
//	freehold.heap.slow_allocs    {call}
//	freehold.heap.slow_frees     {call}
//	freehold.heap.refusals       {call}
//	freehold.heap.purged         By
//	freehold.heap.guarded        {block}
//	freehold.heap.guards         {block}
//	freehold.heap.skipped_guards {block}
//
// They are the fields of [freehold.Stats]. Heaps of one name are added up already, see package
// metrics. These have the attribute freehold.tag, and are of [freehold.AllTags]. They count
// every call. A tag such as db/cache is part of db:
//
//	freehold.tag.live            By
//	freehold.tag.live_blocks     {block}
//	freehold.tag.peak            By
//	freehold.tag.allocs          {block}
//	freehold.tag.frees           {block}
//
// These have the attribute freehold.account.name, with the names above it, such as
// process/search/tenant. They are fields of [budget.AccountStats], by metrics.Accounts:
//
//	freehold.account.used        By
//	freehold.account.reserved    By
//	freehold.account.live        By
//	freehold.account.live_blocks {block}
//	freehold.account.soft_limit  By        only with a soft limit
//	freehold.account.limit       By        only with a hard limit
//	freehold.account.pressure    {level}   0 calm, 1 soft, 2 hard
//	freehold.account.refusals    {call}
//	freehold.account.evicted     By
//
// These have no attribute, and are the fields of [budget.Stats] while a budget runs:
//
//	freehold.budget.limit        By
//	freehold.budget.headroom     By
//	freehold.budget.off_heap     By
//	freehold.budget.others       By
//	freehold.budget.go_held      By
//	freehold.budget.go_live      By
//	freehold.budget.go_limit     By
//	freehold.budget.short        By
//	freehold.budget.pressure     {level}   0 calm, 1 soft, 2 hard
//	freehold.budget.wanted       By
//	freehold.budget.adjustments  {change}
//	freehold.budget.reclaims     {collection}
//	freehold.budget.rounds       {round}
//
// What only rises is a counter; the others are up-down-counters, so that backends may add
// them up.
package otel

import (
	"context"
	"fmt"
	"slices"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/metrics"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// HeapNameKey is the attribute that tells heaps apart.
const HeapNameKey = attribute.Key("freehold.heap.name")

// TagKey is the attribute that tells tags apart.
const TagKey = attribute.Key("freehold.tag")

// AccountNameKey is the attribute that tells accounts apart.
const AccountNameKey = attribute.Key("freehold.account.name")

// A figure is one metric of a heap, a tag, an account or the budget.
type figure[S any] struct {
	name, unit, help string
	counts           bool // only rises
	value            func(*S) int64
}

var figures = []figure[freehold.Stats]{
	{"live", "By", "Memory in live blocks, as the heap rounds them up.", false, func(st *freehold.Stats) int64 { return int64(st.LiveBytes) }},
	{"live_blocks", "{block}", "Live blocks.", false, func(st *freehold.Stats) int64 { return int64(st.Live) }},
	{"large", "By", "Memory in live blocks larger than 32 KiB or in whole pages.", false, func(st *freehold.Stats) int64 { return int64(st.LargeBytes) }},
	{"large_blocks", "{block}", "Live blocks larger than 32 KiB or in whole pages.", false, func(st *freehold.Stats) int64 { return int64(st.Large) }},
	{"active", "By", "Memory of pages in use.", false, func(st *freehold.Stats) int64 { return int64(st.Active) }},
	{"resident", "By", "Physical memory, an upper bound.", false, func(st *freehold.Stats) int64 { return int64(st.Resident) }},
	{"retained", "By", "Reserved addresses without memory.", false, func(st *freehold.Stats) int64 { return int64(st.Retained) }},
	{"metadata", "By", "Memory of the heap's own bookkeeping.", false, func(st *freehold.Stats) int64 { return int64(st.Metadata) }},
	{"committed", "By", "Memory of pages that may hold some, which the limit is for.", false, func(st *freehold.Stats) int64 { return int64(st.Committed) }},
	{"limit", "By", "Hard limit of the committed memory.", false, func(st *freehold.Stats) int64 { return int64(st.MaxBytes) }},
	{"slow_allocs", "{call}", "Allocations that missed the caches, and all of large blocks.", true, func(st *freehold.Stats) int64 { return int64(st.SlowAllocs) }},
	{"slow_frees", "{call}", "Frees that missed the caches, and all of large blocks.", true, func(st *freehold.Stats) int64 { return int64(st.SlowFrees) }},
	{"refusals", "{call}", "Calls that failed for lack of memory.", true, func(st *freehold.Stats) int64 { return int64(st.Refusals) }},
	{"purged", "By", "Memory returned to the system.", true, func(st *freehold.Stats) int64 { return int64(st.PurgedBytes) }},
	{"guarded", "{block}", "Live blocks that are guarded.", false, func(st *freehold.Stats) int64 { return int64(st.Guarded) }},
	{"guards", "{block}", "Blocks that were guarded.", true, func(st *freehold.Stats) int64 { return int64(st.GuardedEver) }},
	{"skipped_guards", "{block}", "Blocks that were to be guarded, and were not for lack of budget or memory.", true, func(st *freehold.Stats) int64 { return int64(st.GuardsSkipped) }},
}

var tagFigures = []figure[freehold.TagStats]{
	{"live", "By", "Memory in live blocks, as asked for.", false, func(t *freehold.TagStats) int64 { return int64(t.LiveBytes) }},
	{"live_blocks", "{block}", "Live blocks.", false, func(t *freehold.TagStats) int64 { return int64(t.Live) }},
	{"peak", "By", "Maximum of the memory in live blocks.", false, func(t *freehold.TagStats) int64 { return int64(t.PeakBytes) }},
	{"allocs", "{block}", "Blocks allocated.", true, func(t *freehold.TagStats) int64 { return int64(t.Allocs) }},
	{"frees", "{block}", "Blocks freed.", true, func(t *freehold.TagStats) int64 { return int64(t.Frees) }},
}

var accountFigures = []figure[budget.AccountStats]{
	{"used", "By", "Memory that counts against the limits: of the account, those below, and reservations.", false, func(st *budget.AccountStats) int64 { return st.Used }},
	{"reserved", "By", "Reservations that are not in use.", false, func(st *budget.AccountStats) int64 { return st.Reserved }},
	{"live", "By", "Memory in live blocks of the account's own.", false, func(st *budget.AccountStats) int64 { return st.LiveBytes }},
	{"live_blocks", "{block}", "Live blocks of the account's own.", false, func(st *budget.AccountStats) int64 { return int64(st.Live) }},
	{"soft_limit", "By", "Soft limit of the used memory.", false, func(st *budget.AccountStats) int64 { return st.Soft }},
	{"limit", "By", "Hard limit of the used memory.", false, func(st *budget.AccountStats) int64 { return st.Hard }},
	{"pressure", "{level}", "How short memory is: 0 calm, 1 soft, 2 hard.", false, func(st *budget.AccountStats) int64 { return int64(st.Pressure.Level) }},
	{"refusals", "{call}", "Requests that the account had no room for.", true, func(st *budget.AccountStats) int64 { return int64(st.Refusals) }},
	{"evicted", "By", "Memory that functions of AllocOrEvict have freed.", true, func(st *budget.AccountStats) int64 { return st.Evicted }},
}

var budgetFigures = []figure[budget.Stats]{
	{"limit", "By", "The process's memory limit.", false, func(st *budget.Stats) int64 { return st.Limit }},
	{"headroom", "By", "The part of the limit that is left free.", false, func(st *budget.Stats) int64 { return st.Headroom }},
	{"off_heap", "By", "Memory that all heaps have committed.", false, func(st *budget.Stats) int64 { return st.OffHeap }},
	{"others", "By", "Resident memory that neither Go nor a heap has.", false, func(st *budget.Stats) int64 { return st.Others }},
	{"go_held", "By", "Memory that Go's memory limit counts.", false, func(st *budget.Stats) int64 { return st.GoHeld }},
	{"go_live", "By", "Memory that the last collection found live.", false, func(st *budget.Stats) int64 { return st.GoLive }},
	{"go_limit", "By", "Go's memory limit; the largest int64 is none.", false, func(st *budget.Stats) int64 { return st.GoLimit }},
	{"short", "By", "Memory by which what must be there passes the limit less the headroom.", false, func(st *budget.Stats) int64 { return st.Short }},
	{"pressure", "{level}", "How short memory is: 0 calm, 1 soft, 2 hard.", false, func(st *budget.Stats) int64 { return int64(st.Pressure.Level) }},
	{"wanted", "By", "Memory that should become free for the pressure to be calm.", false, func(st *budget.Stats) int64 { return st.Pressure.Wanted }},
	{"adjustments", "{change}", "Changes of Go's memory limit and GOGC.", true, func(st *budget.Stats) int64 { return int64(st.Adjustments) }},
	{"reclaims", "{collection}", "Collections that the budget ran, as Go held more than it may.", true, func(st *budget.Stats) int64 { return int64(st.Reclaims) }},
	{"rounds", "{round}", "Rounds in which heaps were trimmed and callbacks called.", true, func(st *budget.Stats) int64 { return int64(st.Rounds) }},
}

// instrument returns the figure's instrument of a meter.
func (f *figure[S]) instrument(meter metric.Meter, prefix string) (metric.Int64Observable, error) {
	name := prefix + f.name
	if f.counts {
		return meter.Int64ObservableCounter(name, metric.WithUnit(f.unit), metric.WithDescription(f.help))
	}
	return meter.Int64ObservableUpDownCounter(name, metric.WithUnit(f.unit), metric.WithDescription(f.help))
}

// instruments returns those of figures.
func instruments[S any](meter metric.Meter, prefix string, figures []figure[S]) (all []metric.Int64Observable, err error) {
	for i := range figures {
		instrument, err := figures[i].instrument(meter, prefix)
		if err != nil {
			return nil, fmt.Errorf("freehold: otel.Register: %w", err)
		}
		all = append(all, instrument)
	}
	return all, nil
}

// Register makes the instruments on a meter, of all heaps, tags and accounts of the process, those that are
// made later too, and of the budget that runs. Unregister of its result ends them. The error is the meter's. Each collection
// costs a call of Stats for each heap, microseconds.
func Register(meter metric.Meter) (metric.Registration, error) {
	ofHeaps, err := instruments(meter, "freehold.heap.", figures)
	if err != nil {
		return nil, err
	}
	ofTags, err := instruments(meter, "freehold.tag.", tagFigures)
	if err != nil {
		return nil, err
	}
	ofAccounts, err := instruments(meter, "freehold.account.", accountFigures)
	if err != nil {
		return nil, err
	}
	ofBudget, err := instruments(meter, "freehold.budget.", budgetFigures)
	if err != nil {
		return nil, err
	}
	var observables []metric.Observable
	for _, instrument := range slices.Concat(ofHeaps, ofTags, ofAccounts, ofBudget) {
		observables = append(observables, instrument)
	}
	registration, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, st := range metrics.ByName() {
			heap := metric.WithAttributeSet(attribute.NewSet(HeapNameKey.String(st.Name)))
			for i, f := range figures {
				if f.name != "limit" || st.MaxBytes > 0 {
					o.ObserveInt64(ofHeaps[i], f.value(&st), heap)
				}
			}
		}
		for _, t := range freehold.AllTags() {
			tag := metric.WithAttributeSet(attribute.NewSet(TagKey.String(t.Tag)))
			for i, f := range tagFigures {
				o.ObserveInt64(ofTags[i], f.value(&t), tag)
			}
		}
		for _, st := range metrics.Accounts() {
			account := metric.WithAttributeSet(attribute.NewSet(AccountNameKey.String(st.Name)))
			for i, f := range accountFigures {
				if (f.name != "soft_limit" || st.Soft > 0) && (f.name != "limit" || st.Hard > 0) {
					o.ObserveInt64(ofAccounts[i], f.value(&st), account)
				}
			}
		}
		if b := budget.Running(); b != nil {
			st := b.Stats()
			for i, f := range budgetFigures {
				o.ObserveInt64(ofBudget[i], f.value(&st))
			}
		}
		return nil
	}, observables...)
	if err != nil {
		return nil, fmt.Errorf("freehold: otel.Register: %w", err)
	}
	return registration, nil
}
