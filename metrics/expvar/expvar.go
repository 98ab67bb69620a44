// Expvar: the figures of heaps and caches at /debug/vars.

// Package expvar publishes the figures of heaps and caches with Go's package expvar:
//
//	import _ "github.com/freehold-go/freehold/metrics/expvar"
//
//	curl http://localhost:6060/debug/vars
//
// The variables are
//
//   - freehold: an object with one member for each heap's name, with the fields of
//     [freehold.Stats]; metrics.ByName adds up heaps of one name
//   - freehold.tags: one member for each tag, with the fields of [freehold.Counts]; a tag includes
//     the tags below it
//   - freehold.budget: the fields of [budget.Stats] while a budget runs, or null
//   - freehold.accounts: one member for each account's name, with the fields of
//     [budget.AccountStats], by metrics.Accounts
//   - freehold.caches: one member for each cache's name, with the fields of [cache.Stats], by
//     metrics.Caches
//
// A read costs a call of Stats for each heap, account and cache. Otherwise they cost nothing.
//
// Go's package mounts /debug/vars on http.DefaultServeMux. Do not serve it to strangers.
package expvar

import (
	"expvar"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/cache"
	"github.com/freehold-go/freehold/metrics"
)

func init() {
	expvar.Publish("freehold", expvar.Func(func() any {
		heaps := map[string]freehold.Stats{}
		for _, st := range metrics.ByName() {
			heaps[st.Name] = st
		}
		return heaps
	}))
	expvar.Publish("freehold.tags", expvar.Func(func() any {
		tags := map[string]freehold.Counts{}
		for _, t := range freehold.AllTags() {
			tags[t.Tag] = t.Counts
		}
		return tags
	}))
	expvar.Publish("freehold.accounts", expvar.Func(func() any {
		accounts := map[string]budget.AccountStats{}
		for _, st := range metrics.Accounts() {
			accounts[st.Name] = st
		}
		return accounts
	}))
	expvar.Publish("freehold.caches", expvar.Func(func() any {
		caches := map[string]cache.Stats{}
		for _, st := range metrics.Caches() {
			caches[st.Name] = st
		}
		return caches
	}))
	expvar.Publish("freehold.budget", expvar.Func(func() any {
		if b := budget.Running(); b != nil {
			return b.Stats()
		}
		return nil
	}))
}
