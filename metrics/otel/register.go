// Register: the figures of heaps and caches for OpenTelemetry.

// Package otel exports the figures of heaps and caches to OpenTelemetry:
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
// They are the fields of [freehold.Stats]. Heaps of one name are added up, as package metrics says.
// The next metrics have the attribute freehold.tag, and are from [freehold.AllTags]. They count
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
//	freehold.account.live        By
//	freehold.account.live_blocks {block}
//	freehold.account.soft_limit  By        only with a soft limit
//	freehold.account.limit       By        only with a hard limit
//	freehold.account.pressure    {level}   0 calm, 1 soft, 2 hard
//	freehold.account.refusals    {call}
//	freehold.account.evicted     By
//
// These have the attribute freehold.cache.name, cache.Options.Name. They are the fields of
// [cache.Stats], by metrics.Caches:
//
//	freehold.cache.entries       {entry}
//	freehold.cache.live          By
//	freehold.cache.dead          By
//	freehold.cache.index         By
//	freehold.cache.index_slots   {slot}
//	freehold.cache.reserved      By
//	freehold.cache.limit         By
//	freehold.cache.hits          {read}
//	freehold.cache.misses        {read}
//	freehold.cache.undecodable   {read}
//	freehold.cache.loads         {key}
//	freehold.cache.loads_failed  {key}
//	freehold.cache.refreshes     {key}
//	freehold.cache.sets          {entry}
//	freehold.cache.evictions     {entry}   freehold.reason is room, expired or shrunk
//	freehold.cache.copied        By
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
// A figure that only rises is a counter. The others are up-down-counters, so that backends may add
// them up.
package otel

import (
	"context"
	"fmt"

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

// CacheNameKey is the attribute that tells caches apart.
const CacheNameKey = attribute.Key("freehold.cache.name")

// ReasonKey is the attribute that tells why a cache dropped entries.
const ReasonKey = attribute.Key("freehold.reason")

// maker makes instruments on a meter.
type maker struct {
	metric.Meter
	made []metric.Observable
	err  error // the first one
}

// instruments makes an instrument for each figure.
func instruments[S any](m *maker, prefix string, figures []metrics.Figure[S]) (all []metric.Int64Observable) {
	for i, f := range figures {
		if i > 0 && f.Name == figures[i-1].Name { // of another reason
			all = append(all, all[i-1])
			continue
		}
		unit, help := metric.WithUnit(f.Unit), metric.WithDescription(f.Help)
		var instrument metric.Int64Observable
		var err error
		if f.Rises {
			instrument, err = m.Int64ObservableCounter(prefix+f.Name, unit, help)
		} else {
			instrument, err = m.Int64ObservableUpDownCounter(prefix+f.Name, unit, help)
		}
		if m.err == nil {
			m.err = err
		}
		m.made = append(m.made, instrument)
		all = append(all, instrument)
	}
	return all
}

// observe observes figures by their instruments.
func observe[S any](o metric.Observer, figures []metrics.Figure[S], by []metric.Int64Observable, st *S, with ...metric.ObserveOption) {
	for i, f := range figures {
		if n := f.Value(st); n != 0 || !f.Limit {
			with := with[:len(with):len(with)]
			if f.Of != "" {
				with = append(with, metric.WithAttributes(ReasonKey.String(f.Of)))
			}
			o.ObserveInt64(by[i], n, with...)
		}
	}
}

// Register makes the instruments on a meter. They show all heaps, tags, accounts and caches of the
// process, later ones too, and the running budget. Unregister of its result ends them. The error is
// the meter's. Each collection costs a call of Stats, microseconds, for each heap, account and
// cache.
func Register(meter metric.Meter) (metric.Registration, error) {
	m := &maker{Meter: meter}
	ofHeaps := instruments(m, "freehold.heap.", metrics.HeapFigures)
	ofTags := instruments(m, "freehold.tag.", metrics.TagFigures)
	ofAccounts := instruments(m, "freehold.account.", metrics.AccountFigures)
	ofCaches := instruments(m, "freehold.cache.", metrics.CacheFigures)
	ofBudget := instruments(m, "freehold.budget.", metrics.BudgetFigures)
	if m.err != nil {
		return nil, fmt.Errorf("freehold: otel.Register: %w", m.err)
	}
	registration, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for _, st := range metrics.ByName() {
			observe(o, metrics.HeapFigures, ofHeaps, &st, metric.WithAttributes(HeapNameKey.String(st.Name)))
		}
		for _, st := range freehold.AllTags() {
			observe(o, metrics.TagFigures, ofTags, &st, metric.WithAttributes(TagKey.String(st.Tag)))
		}
		for _, st := range metrics.Accounts() {
			observe(o, metrics.AccountFigures, ofAccounts, &st, metric.WithAttributes(AccountNameKey.String(st.Name)))
		}
		for _, st := range metrics.Caches() {
			observe(o, metrics.CacheFigures, ofCaches, &st, metric.WithAttributes(CacheNameKey.String(st.Name)))
		}
		if b := budget.Running(); b != nil {
			st := b.Stats()
			observe(o, metrics.BudgetFigures, ofBudget, &st)
		}
		return nil
	}, m.made...)
	if err != nil {
		return nil, fmt.Errorf("freehold: otel.Register: %w", err)
	}
	return registration, nil
}
