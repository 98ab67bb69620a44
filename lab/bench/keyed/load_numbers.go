// Numbers: a map of uint64 to uint64, by one goroutine.

//go:build peer_gomap || peer_swiss || peer_map

package main

import (
	"time"

	"github.com/freehold-go/freehold/lab/bench/random"
)

func init() {
	loads["numbers-insert"] = func(p *params) (r result) {
		fillNumbers(p.Entries / 100)
		var m numbers
		r = timed(p.Entries, func() { m = fillNumbers(p.Entries) })
		r.Sum = uint64(lenNumbers(m))
		return r
	}
	loads["numbers-hit"] = func(p *params) result { return lookNumbers(p, 0) }
	loads["numbers-miss"] = func(p *params) result { return lookNumbers(p, uint64(p.Entries)) }
	loads["numbers-many"] = manyNumbers
	loads["numbers-churn"] = churnNumbers
	loads["numbers-worst"] = worstNumbers
	loads["numbers-held"] = func(p *params) result {
		fillNumbers(100)
		return filled(p, func() any { return fillNumbers(p.Entries) })
	}
}

func fillNumbers(n int) numbers {
	m := newNumbers()
	for i := range uint64(n) {
		putNumber(m, keyOf(i), i)
	}
	return m
}

// lookNumbers gets keys at random, all of which are there, or none, when they begin
// at n.
func lookNumbers(p *params, from uint64) result {
	m, n := fillNumbers(p.Entries), uint64(p.Entries)
	rnd, sum := random.State(3), uint64(0)
	look := func(count int) {
		for range count {
			if v, ok := getNumber(m, keyOf(from+below(&rnd, n))); ok {
				sum += v
			} else {
				sum++
			}
		}
	}
	count := min(p.Entries, lookups)
	look(count / 4)
	r := timed(count, func() { look(count) })
	r.Sum = sum
	return r
}

// batch is how many keys are looked up at once.
const batch = 16

func manyNumbers(p *params) result {
	m, n := fillNumbers(p.Entries), uint64(p.Entries)
	rnd, sum := random.State(3), uint64(0)
	look := func(count int) {
		var keys, values [batch]uint64
		var found [batch]bool
		for range count / batch {
			for i := range keys {
				keys[i] = keyOf(below(&rnd, n))
			}
			getNumbers(m, &keys, &values, &found)
			for i, ok := range found {
				if ok {
					sum += values[i]
				}
			}
		}
	}
	count := max(min(p.Entries, lookups), batch)
	look(count / 4)
	r := timed(count, func() { look(count) })
	r.Sum = sum
	return r
}

// churnNumbers deletes the oldest entry and puts a new one.
func churnNumbers(p *params) result {
	m, n := fillNumbers(p.Entries), uint64(p.Entries)
	churn := func(from, to uint64) {
		for i := from; i < to; i++ {
			deleteNumber(m, keyOf(i))
			putNumber(m, keyOf(n+i), i)
		}
	}
	count := uint64(min(p.Entries, lookups))
	churn(0, count/4)
	r := timed(int(count), func() { churn(count/4, count/4+count) })
	r.Sum = uint64(lenNumbers(m))
	return r
}

// worstNumbers fills a map and times each put. Its ns are those of the worst.
func worstNumbers(p *params) (r result) {
	m := newNumbers()
	worst := time.Duration(0)
	r = timed(p.Entries, func() {
		last := time.Now()
		for i := range uint64(p.Entries) {
			putNumber(m, keyOf(i), i)
			now := time.Now()
			worst = max(worst, now.Sub(last))
			last = now
		}
	})
	r.NS, r.Sum = float64(worst), uint64(lenNumbers(m))
	return r
}
