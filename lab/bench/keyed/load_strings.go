// Strings: a map of strings of 16 B, which the map owns, to values of 16 B.

//go:build peer_gomap || peer_swiss || peer_map || peer_fastcache

package main

import (
	"runtime"
	"slices"
	"time"
)

// pair is a value of the map.
type pair struct{ a, b uint64 }

func init() {
	loads["strings-insert"] = func(p *params) (r result) {
		fillTexts(newStringKeys(p.entries/100, inOrder))
		keys := newStringKeys(p.entries, inOrder)
		var m texts
		r = timed(p.entries, func() { m = fillTexts(keys) })
		r.sum = uint64(p.entries)
		runtime.KeepAlive(m)
		return r
	}
	loads["strings-hit"] = func(p *params) result { return lookTexts(p, hits(p.entries)) }
	loads["strings-miss"] = func(p *params) result { return lookTexts(p, misses(p.entries)) }
	loads["strings-held"] = func(p *params) result {
		keys := newStringKeys(p.entries, inOrder)
		fillTexts(keys[:100*stringBytes])
		return filled(p, func() any { return fillTexts(keys) })
	}
	loads["strings-collect"] = collectTexts
}

func fillTexts(keys stringKeys) texts {
	m := newTexts(keys.len())
	for i := range keys.len() {
		putText(m, keys.at(i), pair{uint64(i), 1})
	}
	return m
}

func lookTexts(p *params, keys stringKeys) result {
	m, sum := fillTexts(newStringKeys(p.entries, inOrder)), uint64(0)
	look := func(keys stringKeys) {
		for i := range keys.len() {
			if v, ok := getText(m, keys.at(i)); ok {
				sum += v.a
			} else {
				sum++
			}
		}
	}
	look(keys[:keys.len()/4*stringBytes])
	r := timed(keys.len(), func() { look(keys) })
	r.sum = sum
	return r
}

// collections is how often collectTexts collects: an odd number has a median.
const collections = 41

// collectTexts forces collections while the map is live. Its ns are those of the
// median.
func collectTexts(p *params) (r result) {
	m := fillTexts(newStringKeys(p.entries, inOrder))
	runtime.GC()
	runtime.GC()
	var took []time.Duration
	r = timed(collections, func() {
		for range collections {
			start := time.Now()
			runtime.GC()
			took = append(took, time.Since(start))
		}
	})
	slices.Sort(took)
	r.ns, r.sum = float64(took[len(took)/2]), uint64(p.entries)
	runtime.KeepAlive(m)
	return r
}
