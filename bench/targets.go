// Targets: what freehold is meant to reach, against peers in the same run.

package main

import "fmt"

// A target is met when freehold's figure on a load is at most limit times
// another figure of the same round, in the median over the rounds, or at most
// limit where there is no other.
type target struct {
	what  string
	load  string
	row   string
	than  string // the other figure's row; "" means limit stands alone
	on    string // the other figure's load, where it is not the same
	limit float64
}

// A verdict is a target held against a run.
type verdict struct {
	What    string  `json:"what"`
	Value   float64 `json:"value"`
	Min     float64 `json:"min"` // over the rounds
	Max     float64 `json:"max"`
	Limit   float64 `json:"limit"`
	Figures string  `json:"figures"` // the medians that make the value
	Result  string  `json:"result"`  // ok, MISSED, or why there is no value
	Noisy   bool    `json:"noisy"`
}

func targets() []target {
	var all []target
	add := func(what, load, than, on string, limit float64) {
		all = append(all, target{what, load, "freehold", than, on, limit})
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
	add("realloc 1 MiB to 1 GiB, of a copying one", "grow", "freehold", "copy", 0.05)
	add("resident per requested byte, 16 B..1 KiB", "memory/16-1024", "", "", 1.15)
	add("Go heap allocations in its calls", "mallocs", "", "", 0)
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
