// Targets: what freehold is meant to reach, against peers in the same run.

package bench

import (
	"fmt"
	"slices"
	"strings"
)

// A target is met when freehold's figure on a load is at most limit times
// another figure of the same round, in the median over the rounds, or at most
// limit where there is no other.
type target struct {
	what  string
	load  string
	row   string
	than  string // the other figure's row, or fastestC; "" means limit stands alone
	on    string // the other figure's load, where it is not the same
	limit float64
}

// fastestC stands for the C program that was fastest in the round.
const fastestC = "the fastest C program"

// A verdict is a target held against a run.
type verdict struct {
	What    string
	Value   float64
	Min     float64 // over the rounds
	Max     float64
	Limit   float64
	Figures string // the medians that make the value
	Result  string // ok, MISSED, or why there is no value
	Noisy   bool
}

func targets() []target {
	var all []target
	addTo := func(row, what, load, than, on string, limit float64) {
		all = append(all, target{what, load, row, than, on, limit})
	}
	add := func(what, load, than, on string, limit float64) {
		addTo("freehold", what, load, than, on, limit)
	}
	small := []int{16, 64, 256, 1 << 10, 4 << 10}
	for _, peer := range []struct {
		row, what string
		limit     float64
	}{
		{"c-jemalloc", "native jemalloc's", 1},
		{"cgo-jemalloc", "jemalloc's through cgo", 0.15},
		{"go", "Go's new", 0.5},
	} {
		for _, size := range small {
			add(fmt.Sprintf("pair of %s, of %s", bytesText(size), peer.what),
				fmt.Sprintf("pair/%d", size), peer.row, "", peer.limit)
		}
	}
	for _, size := range small {
		add(fmt.Sprintf("pair of %s on two goroutines, of one", bytesText(size)),
			fmt.Sprintf("pair2/%d", size), "freehold", fmt.Sprintf("pair/%d", size), 1.15)
	}
	for _, size := range []int{64 << 10, 1 << 20} {
		add(fmt.Sprintf("pair of %s, of native jemalloc's", bytesText(size)),
			fmt.Sprintf("pair/%d", size), "c-jemalloc", "", 1.5)
	}
	add("mixed 16 B..4 KiB, of native jemalloc's", "mixed/16-4096", "c-jemalloc", "", 0.7)
	add("mixed 16 B..4 KiB, of native tcmalloc's", "mixed/16-4096", "c-tcmalloc", "", 1.5)
	add("mixed 16 B..4 KiB on two goroutines, of one", "mixed2/16-4096", "freehold", "mixed/16-4096", 1.2)
	add("hand-over of 64 B, of native jemalloc's", "handover/64", "c-jemalloc", "", 0.5)
	add("hand-over of 16..1039 B, of native jemalloc's", "handover/16-1039", "c-jemalloc", "", 0.5)
	addTo("freehold-cache", "pair of 64 B through a Cache, of native jemalloc's", "pair/64", "c-jemalloc", "", 0.8)
	addTo("freehold-pool", "Pool pair of 64 B, of native tcmalloc's", "pair/64", "c-tcmalloc", "", 1)
	addTo("freehold-pool-cache", "Pool pair of 64 B through a Cache, of the fastest C's", "pair/64", fastestC, "", 0.5)
	addTo("freehold-arena", "Arena block of 64 B, of z.Allocator's", "bump/64", "ristretto-allocator", "", 0.4)
	addTo("freehold-arena", "Arena block of 64 B, ns", "bump/64", "", "", 2.5)
	addTo("freehold-arena", "Arena new of 64 B, of z.Allocator's", "bump/64-new", "ristretto-allocator", "", 0.5)
	addTo("freehold-shared", "Shared block of 64 B, of z.Allocator's, two goroutines", "bump2/64", "ristretto-allocator", "", 0.1)
	addTo("freehold-shared", "Shared block of 64 B on two goroutines, of one", "bump2/64", "freehold-shared", "bump/64", 1.3)
	addTo("freehold-arena", "Arena Reset of 1 GiB, ns", "reset", "", "", 1000)
	addTo("freehold-pool", "guard entered and left, ns", "guard", "", "", 5)
	addTo("freehold-pool", "guard on two goroutines, of one", "guard2", "freehold-pool", "guard", 1.15)
	addTo("freehold-arena", "list of 2 million nodes on an Arena, of the Go heap's", "list", "go", "", 0.25)
	add("list of 2 million nodes, of the Go heap's", "list", "go", "", 0.4)
	for _, threads := range []string{"lru", "lru8"} {
		for _, sizes := range []string{"16-1024", "16-65536"} {
			what := fmt.Sprintf("cache at MaxBytes, %s B, of the same at a Limit", sizes)
			if threads == "lru8" {
				what += ", eight goroutines"
			}
			addTo("freehold-maxbytes", what, threads+"/"+sizes, "freehold-limit", "", 1.3)
		}
	}
	add("zeroed 256 MiB of which one byte is used, ms", "onebyte", "", "", 1)
	add("zeroed 256 MiB of which one byte is used, MB resident", "onebyte-memory", "", "", 4)
	add("realloc 1 MiB to 1 GiB, of a copying one", "grow", "freehold", "copy", 0.05)
	add("resident per requested byte, 16 B..1 KiB", "memory/16-1024", "", "", 1.15)
	add("Go heap allocations in its calls", "mallocs", "", "", 0)
	return slices.Concat(all, sortTargets(), keyedTargets())
}

func sortTargets() (all []target) {
	add := func(what, load, than, on string, limit float64) {
		row := "freehold-records"
		if strings.HasPrefix(load, "lines/") {
			row = "freehold-sort"
		}
		all = append(all, target{what, load, row, than, on, limit})
	}
	z, gnu := "ristretto-buffer", "gnu-sort"
	add("sort of 24 B by a number, of z.Buffer's", "sort/24", z, "", 0.1)
	add("sort of 24 B by 8 bytes, of z.Buffer's", "sort/24-bytes", z, "sort/24", 0.1)
	add("sort of 24 B by comparison, of z.Buffer's", "sort/24-cmp", z, "sort/24", 0.4)
	add("sort of 8..64 B, framed, of z.Buffer's", "sort/framed", z, "", 0.2)
	for _, key := range []string{"24", "24-bytes", "24-cmp", "framed"} {
		what := map[string]string{"24": "24 B by a number", "24-bytes": "24 B by 8 bytes", "24-cmp": "24 B by comparison", "framed": "8..64 B, framed"}[key]
		on := ""
		if key != "framed" {
			on = "sort/24-peak"
		}
		add("memory to sort "+what+", per byte of records", "sort/"+key+"-extra", "", "", 0.55)
		add("peak in a sort of "+what+", of z.Buffer's", "sort/"+key+"-peak", z, on, 0.85)
	}
	add("append of 16 B, of z.Buffer's SliceAllocate", "append/16", z, "", 0.5)
	add("append of 16 B, all of one size, of SliceAllocate", "append/16-fixed", z, "append/16", 0.5)
	add("buffer grown to 1 GiB, of z.Buffer's copying", "buffer/grow", z, "", 0.05)
	add("peak of a buffer grown to 1 GiB, per byte", "buffer/grow-memory", "", "", 1.05)
	add("buffer grown to 8 GiB, of z.Buffer's copying to 1 GiB", "buffer/grow-full", z, "buffer/grow", 0.05)
	add("peak of a buffer grown to 8 GiB, per byte", "buffer/grow-full-memory", "", "", 1.05)
	for _, kind := range lineKinds {
		add("freehold sort of lines: "+kind.column+", of GNU sort's", "lines/"+kind.name, gnu, "", 0.5)
	}
	for _, kind := range lineKinds {
		add("peak of freehold sort: "+kind.column+", of -S + 64 MiB", "lines/"+kind.name+"-limit", "", "", 1)
	}
	return all
}

func keyedTargets() (all []target) {
	add := func(what, load, row, than string, limit float64) {
		all = append(all, target{what: what, load: load, row: row, than: than, limit: limit})
	}
	m, gomap := "freehold-map", "go-map"
	add("map: get that hits, of Go's map", "numbers/hit", m, gomap, 0.8)
	add("map: get that misses, of Go's map", "numbers/miss", m, gomap, 0.6)
	add("map: insert, grown from empty, of Go's map", "numbers/insert", m, gomap, 0.9)
	all = append(all, target{"map: get of 16 at once, of Go's get", "numbers/many", m, gomap, "numbers/hit", 0.5})
	add("map: bytes per entry, of Go's map", "numbers/held", m, gomap, 0.76)
	add("map of strings: get, of Go's map", "strings/hit", m, gomap, 0.9)
	add("map of strings: insert, of Go's map", "strings/insert", m, gomap, 1)
	add("map of strings: bytes per entry, of Go's map", "strings/held", m, gomap, 0.6)
	add("forced collection beside a map, ms", "strings/collect-full", m, "", 0.2)
	add("Sharded, 100,000 entries, of xsync's Map", "shared/small", "freehold-sharded", "xsync-map", 0.8)
	add("Sharded, 1,000,000 entries, of xsync's Map", "shared/large", "freehold-sharded", "xsync-map", 0.8)
	for _, peer := range []string{"google-btree", "tidwall-btree"} {
		add("btree: insert, of "+peer+"'s", "ordered/insert", "freehold-btree", peer, 0.65)
		add("btree: get, of "+peer+"'s", "ordered/get", "freehold-btree", peer, 0.5)
		add("btree: scan, of "+peer+"'s", "ordered/scan", "freehold-btree", peer, 0.5)
	}
	add("intern: new string, of a Go map's", "intern/new", "freehold-intern", "go-map-intern", 0.5)
	add("intern: known string, of a Go map's", "intern/known", "freehold-intern", "go-map-intern", 0.8)
	add("intern: bytes per string, of a Go map's", "intern/held", "freehold-intern", "go-map-intern", 0.5)
	return all
}

// judge holds every target against a run. A load that did not run is left out,
// a row that did not is said.
func judge(r *run) (all []verdict) {
	units := map[string]unit{}
	for _, l := range r.loads {
		units[l.key] = l.unit
	}
	for _, t := range targets() {
		on := t.on
		if on == "" {
			on = t.load
		}
		u, ran := units[t.load]
		if _, otherRan := units[on]; !ran || !otherRan {
			continue
		}
		v := verdict{What: t.what, Limit: t.limit}
		own := r.cells[t.load][t.row]
		if !own.measured() {
			v.Result = "no figure for " + t.row
			all = append(all, v)
			continue
		}
		is := own.spread(u)
		v.Noisy, v.Figures = own.noisy(), u.format(is.Median)
		if t.than != "" {
			other := r.cells[on][t.than]
			if t.than == fastestC {
				other = r.fastestC(on, u)
			}
			if !other.measured() {
				v.Result = "no figure for " + t.than
				all = append(all, v)
				continue
			}
			is = ratio(u, own, other)
			v.Figures += " / " + u.format(other.spread(u).Median)
			v.Noisy = v.Noisy || other.noisy()
		}
		v.Value, v.Min, v.Max = is.Median, is.Min, is.Max
		v.Result = "MISSED"
		if v.Value <= t.limit {
			v.Result = "ok"
		}
		all = append(all, v)
	}
	return all
}

// fastestC returns the least of the C programs' samples on a load, round by
// round.
func (r *run) fastestC(key string, u unit) *cell {
	least := &cell{}
	for _, w := range r.rows {
		c := r.cells[key][w.name]
		if !w.native || w.loop || c == nil {
			continue
		}
		for _, s := range c.samples {
			i := slices.IndexFunc(least.samples, func(l sample) bool { return l.Round == s.Round })
			switch {
			case i < 0:
				least.samples = append(least.samples, s)
			case u.of(s) < u.of(least.samples[i]):
				least.samples[i] = s
			}
		}
	}
	return least
}
