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
		fillTexts(newStringKeys(p.Entries/100, inOrder))
		keys := newStringKeys(p.Entries, inOrder)
		var m texts
		r = timed(p.Entries, func() { m = fillTexts(keys) })
		r.Sum = uint64(p.Entries)
		runtime.KeepAlive(m)
		return r
	}
	loads["strings-hit"] = func(p *params) result { return lookTexts(p, hits(p.Entries)) }
	loads["strings-miss"] = func(p *params) result { return lookTexts(p, misses(p.Entries)) }
	loads["strings-held"] = func(p *params) result {
		keys := newStringKeys(p.Entries, inOrder)
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
	m, sum := fillTexts(newStringKeys(p.Entries, inOrder)), uint64(0)
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
	r.Sum = sum
	return r
}

// collections is how often collectTexts collects: an odd number has a median.
const collections = 41

// collectTexts forces collections while the map is live. Its ns are those of the
// median.
func collectTexts(p *params) (r result) {
	m := fillTexts(newStringKeys(p.Entries, inOrder))
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
	r.NS, r.Sum = float64(took[len(took)/2]), uint64(p.Entries)
	runtime.KeepAlive(m)
	return r
}
