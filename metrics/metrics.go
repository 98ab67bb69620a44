// Metrics: the figures of heaps, accounts and caches, one set for each name.

// Package metrics prepares the figures of heaps and caches for monitoring systems. The exporters
// are in the packages below it:
//
//   - metrics/expvar publishes them at /debug/vars
//   - metrics/prometheus, a module of its own, collects them for Prometheus
//   - metrics/otel, a module of its own, observes them for OpenTelemetry
//
// They also export the Stats of all accounts and caches, the Stats of the running budget, and
// [freehold.AllTags], which counts every call and so gives true rates of allocation. The lists that
// begin with [HeapFigures] are the metrics for Prometheus and OpenTelemetry.
//
// Pools, arenas, maps and other containers are not among them. To see the memory of one, give its
// parent a tag: pool.New[Order](freehold.NewTagged(heap, "orders"), nil).
//
// The exporters tell heaps apart by HeapOptions.Name, and caches by cache.Options.Name. A
// monitoring system keeps each name that it has seen. So name every heap and cache, and give
// short-lived ones one name in common instead of numbers.
package metrics

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/cache"
)

// ByName returns [freehold.AllStats] with one Stats for each name: it adds up heaps of one name.
// Their MaxBytes is 0, no limit, if one of them has none. Names are in the order of their first
// heaps. A name that is not valid UTF-8 is quoted as in Go, since monitoring systems refuse it.
// ByName costs a call of Stats for each heap.
//
// When a heap is closed, its counters, such as SlowAllocs and GuardedEver, leave the sum of its
// name. A monitoring system takes the fall for a restart of the process.
func ByName() []freehold.Stats {
	return byName(freehold.AllStats(), func(st *freehold.Stats) *string { return &st.Name }, add)
}

// Accounts returns [budget.AllAccounts] with one AccountStats for each name: accounts of one name
// are added up, as heaps are by [ByName]. Their Soft or MaxBytes is 0, no limit, if one of them has
// none, and their Pressure is the highest. Room, Peak and Problem are the first account's.
func Accounts() []budget.AccountStats {
	return byName(budget.AllAccounts(), func(st *budget.AccountStats) *string { return &st.Name }, addAccount)
}

// Caches returns [cache.AllStats] with one Stats for each name: caches of one name are added up, as
// heaps are by [ByName]. Those without a name are "(unnamed)". The ratio of hits is
// Hits / (Hits + Misses).
func Caches() []cache.Stats {
	all := cache.AllStats()
	for i := range all {
		all[i].Name = cmp.Or(all[i].Name, "(unnamed)")
	}
	return byName(all, func(st *cache.Stats) *string { return &st.Name }, addCache)
}

// addCache adds the figures of a cache to a sum.
func addCache(sum *cache.Stats, st cache.Stats) {
	addFields(reflect.ValueOf(sum).Elem(), reflect.ValueOf(st))
}

// addAccount adds the figures of an account to a sum.
func addAccount(sum *budget.AccountStats, st budget.AccountStats) {
	addFields(reflect.ValueOf(sum).Elem(), reflect.ValueOf(st))
}

// byName returns all with one S for each name, which is quoted if it is not valid UTF-8.
func byName[S any](all []S, name func(*S) *string, add func(sum *S, st S)) []S {
	var sums []S
	at := map[string]int{}
	for _, st := range all {
		n := name(&st)
		if !utf8.ValidString(*n) {
			*n = strconv.Quote(*n)
		}
		i, found := at[*n]
		if !found {
			at[*n] = len(sums)
			sums = append(sums, st)
			continue
		}
		add(&sums[i], st)
	}
	return sums
}

// add adds the figures of a heap to a sum.
func add(sum *freehold.Stats, st freehold.Stats) {
	addFields(reflect.ValueOf(sum).Elem(), reflect.ValueOf(st))
	for _, c := range st.Classes {
		i, found := slices.BinarySearchFunc(sum.Classes, c.BlockSize, func(c freehold.ClassStats, size int) int {
			return cmp.Compare(c.BlockSize, size)
		})
		if !found {
			sum.Classes = slices.Insert(sum.Classes, i, c)
			continue
		}
		addFields(reflect.ValueOf(&sum.Classes[i]).Elem(), reflect.ValueOf(c))
	}
}

// addFields adds the fields of a struct to a sum. It leaves sizes, peaks and room as they are, and
// takes the highest level. A limit of 0 means none, and makes the sum 0.
func addFields(sum, st reflect.Value) {
	for i := range sum.NumField() {
		to, n := sum.Field(i), st.Field(i)
		switch name := sum.Type().Field(i).Name; {
		case name == "BlockSize", name == "Peak", name == "Room":
		case n.Kind() == reflect.Struct:
			addFields(to, n)
		case name == "Level":
			to.SetInt(max(to.Int(), n.Int()))
		case slices.Contains([]string{"MaxBytes", "Soft"}, name) && (to.IsZero() || n.IsZero()):
			to.SetZero()
		case n.CanInt():
			to.SetInt(to.Int() + n.Int())
		case n.CanUint():
			to.SetUint(to.Uint() + n.Uint())
		}
	}
}
