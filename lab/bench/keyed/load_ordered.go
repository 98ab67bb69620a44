// Ordered: an ordered map of uint64 to uint64, filled in random order.

//go:build peer_google || peer_tidwall || peer_btree

package main

import "github.com/freehold-go/freehold/lab/bench/random"

func init() {
	loads["ordered-insert"] = func(p *params) (r result) {
		fillOrdered(p.Entries / 100)
		var m ordered
		r = timed(p.Entries, func() { m = fillOrdered(p.Entries) })
		r.Sum = uint64(lenOrdered(m))
		return r
	}
	loads["ordered-get"] = getAllOrdered
	loads["ordered-scan"] = func(p *params) (r result) {
		m, sum := fillOrdered(p.Entries), uint64(0)
		scanOrdered(m)
		r = timed(p.Entries, func() { sum = scanOrdered(m) })
		r.Sum = sum
		return r
	}
	loads["ordered-churn"] = churnOrdered
	loads["ordered-held"] = func(p *params) result {
		fillOrdered(100)
		return filled(p, func() any { return fillOrdered(p.Entries) })
	}
}

func fillOrdered(n int) ordered {
	m := newOrdered()
	for i := range uint64(n) {
		putOrdered(m, keyOf(i), i)
	}
	return m
}

func getAllOrdered(p *params) result {
	m, n := fillOrdered(p.Entries), uint64(p.Entries)
	rnd, sum := random.State(3), uint64(0)
	look := func(count int) {
		for range count {
			if v, ok := getOrdered(m, keyOf(below(&rnd, n))); ok {
				sum += v
			}
		}
	}
	count := min(p.Entries, lookups)
	look(count / 4)
	r := timed(count, func() { look(count) })
	r.Sum = sum
	return r
}

// churnOrdered deletes the oldest entry and puts a new one.
func churnOrdered(p *params) result {
	m, n := fillOrdered(p.Entries), uint64(p.Entries)
	churn := func(from, to uint64) {
		for i := from; i < to; i++ {
			deleteOrdered(m, keyOf(i))
			putOrdered(m, keyOf(n+i), i)
		}
	}
	count := uint64(min(p.Entries, lookups))
	churn(0, count/4)
	r := timed(int(count), func() { churn(count/4, count/4+count) })
	r.Sum = uint64(lenOrdered(m))
	return r
}
