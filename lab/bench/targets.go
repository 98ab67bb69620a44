// Targets: what freehold is meant to reach, against peers in the same run.

package bench

import (
	"cmp"
	"fmt"
	"slices"
)

// A target is met when a peer's figure on a benchmark is at most limit times
// another figure of the same round, in the median over the rounds, or at most
// limit where there is no other.
type target struct {
	limit float64
	name  string // of the benchmark
	peer  string
	than  string // the other figure's peer, or fastestC; "" means limit stands alone
	on    string // the other figure's benchmark, where it is not the same
	unit  string // "" means ns/op
}

// fastestC stands for the C program that was fastest in the round.
const fastestC = "the fastest C program"

// A verdict is a target held against a run.
type verdict struct {
	what    string
	is      spread
	limit   float64
	figures string // the medians that make the value
	result  string // ok, MISSED, or why there is no value
	noisy   bool
}

func targets() (all []target) {
	for _, size := range []string{"16", "64", "256", "1024", "4096"} {
		one, two := "Pair/size="+size+"/goroutines=1", "Pair/size="+size+"/goroutines=2"
		all = append(all,
			target{1, one, "freehold", "c-jemalloc", "", ""},
			target{0.15, one, "freehold", "cgo-jemalloc", "", ""},
			target{0.5, one, "freehold", "go", "", ""},
			target{1.15, two, "freehold", "freehold", one, ""})
	}
	for _, size := range []string{"65536", "1048576"} {
		all = append(all, target{1.5, "Pair/size=" + size + "/goroutines=1", "freehold", "c-jemalloc", "", ""})
	}
	const pair, mixed, bump = "Pair/size=64/goroutines=1", "Mixed/size=16-4096/goroutines=1", "Bump/size=64/goroutines=1"
	all = append(all,
		target{0.7, mixed, "freehold", "c-jemalloc", "", ""},
		target{1.5, mixed, "freehold", "c-tcmalloc-gperftools", "", ""},
		target{1.2, "Mixed/size=16-4096/goroutines=2", "freehold", "freehold", mixed, ""},
		target{0.5, "Handover/size=64/read=0", "freehold", "c-jemalloc", "", ""},
		target{0.5, "Handover/size=16-1039/read=0", "freehold", "c-jemalloc", "", ""},
		target{0.8, pair, "freehold-cache", "c-jemalloc", "", ""},
		target{1, pair, "freehold-pool", "c-tcmalloc-gperftools", "", ""},
		target{0.5, pair, "freehold-pool-cache", fastestC, "", ""},
		target{0.4, bump, "freehold-arena", "ristretto-allocator", "", ""},
		target{2.5, bump, "freehold-arena", "", "", ""},
		target{0.5, "BumpNew/size=64/goroutines=1", "freehold-arena", "ristretto-allocator", "", ""},
		target{0.1, "Bump/size=64/goroutines=2", "freehold-shared", "ristretto-allocator", "", ""},
		target{1.3, "Bump/size=64/goroutines=2", "freehold-shared", "freehold-shared", bump, ""},
		target{1000, "Reset", "freehold-arena", "", "", ""},
		target{5, "Guard/goroutines=1", "freehold-pool", "", "", ""},
		target{1.15, "Guard/goroutines=2", "freehold-pool", "freehold-pool", "Guard/goroutines=1", ""},
		target{0.25, "List", "freehold-arena", "go", "", ""},
		target{0.4, "List", "freehold", "go", "", ""},
		target{1e6, "OneByte", "freehold", "", "", ""},
		target{4, "OneByte", "freehold", "", "", "resident-MB"},
		target{0.05, "Grow/by=realloc", "freehold", "freehold", "Grow/by=copy", ""},
		target{1.15, "Memory/size=16-1024", "freehold", "", "", "resident/requested"},
		target{2.6, "Peak/live=8MiB/goroutines=2", "freehold", "", "", "peak/live"},
		target{1.9, "Peak/live=32MiB/goroutines=2", "freehold", "", "", "peak/live"},
		target{0, "GoMallocs", "freehold", "", "", "mallocs/op"})
	for _, goroutines := range []string{"1", "8"} {
		for _, size := range []string{"16-1024", "16-65536"} {
			name := "LRU/size=" + size + "/goroutines=" + goroutines
			all = append(all, target{1.3, name, "freehold-maxbytes", "freehold-limit", "", ""})
		}
	}
	return slices.Concat(all, sortTargets(), keyedTargets())
}

func sortTargets() (all []target) {
	// z.Buffer sorts on one processor.
	const records, one, z = "freehold-records", "freehold-records-one", "ristretto-buffer"
	for _, kind := range []struct {
		name, on string
		limit    float64
	}{{"24", "", 0.2}, {"24-bytes", "Sort/records=24", 0.2}, {"24-cmp", "Sort/records=24", 0.6}, {"framed", "", 0.3}} {
		name := "Sort/records=" + kind.name
		all = append(all,
			target{kind.limit, name, one, z, kind.on, ""},
			target{0.6, name, records, one, "", ""},
			target{0.55, name, records, "", "", "resident/requested"},
			target{0.85, name, records, z, kind.on, "peak-MB"})
	}
	all = append(all,
		target{0.5, "Append/records=16", records, z, "", ""},
		target{0.5, "Append/records=16-fixed", records, z, "Append/records=16", ""})
	for _, to := range []string{"usual", "full"} {
		all = append(all,
			target{0.05, "Buffer/to=" + to, records, z, "Buffer/to=usual", ""},
			target{1.05, "Buffer/to=" + to, records, "", "", "resident/requested"})
	}
	for _, kind := range []string{"mixed", "hex", "prefix", "distinct", "sorted", "reversed"} {
		all = append(all,
			target{0.5, "Lines/kind=" + kind, "freehold-sort", "gnu-sort", "", ""},
			target{1, "Lines/kind=" + kind, "freehold-sort", "", "", "peak/allowed"})
	}
	return all
}

func keyedTargets() []target {
	const m, gomap, held = "freehold-map", "go-map", "resident-B/entry"
	all := []target{
		{0.8, "Numbers/op=hit", m, gomap, "", ""},
		{0.6, "Numbers/op=miss", m, gomap, "", ""},
		{0.9, "Numbers/op=insert", m, gomap, "", ""},
		{0.5, "Numbers/op=many", m, gomap, "Numbers/op=hit", ""},
		{0.76, "Numbers/op=held", m, gomap, "", held},
		{0.9, "Strings/op=hit", m, gomap, "", ""},
		{1, "Strings/op=insert", m, gomap, "", ""},
		{0.6, "Strings/op=held", m, gomap, "", held},
		{0.2e6, "Strings/op=collect-full", m, "", "", ""},
		{0.85, "Texts/op=hit", m, gomap, "", ""},
		{0.7, "Texts/op=miss", m, gomap, "", ""},
		{0.45, "Texts/op=many", m, gomap, "Texts/op=hit", ""},
		{0.6, "Texts/op=held", m, gomap, "", held},
		{0.8, "Shared/op=small", "freehold-sharded", "xsync-map", "", ""},
		{0.8, "Shared/op=large", "freehold-sharded", "xsync-map", "", ""},
		{0.98, "SharedBytes/goroutines=2", "freehold-sharded-append", "fastcache", "", ""},
		{0.95, "SharedBytes/goroutines=2", "freehold-sharded-view", "fastcache", "", ""},
		{0.5, "Intern/op=new", "freehold-intern", "go-map-slice", "", ""},
		{0.8, "Intern/op=known", "freehold-intern", "go-map-slice", "", ""},
		{0.5, "Intern/op=held", "freehold-intern", "go-map-slice", "", held},
	}
	for _, other := range []string{"google-btree", "tidwall-btree"} {
		all = append(all,
			target{0.65, "Ordered/op=insert", "freehold-btree", other, "", ""},
			target{0.5, "Ordered/op=get", "freehold-btree", other, "", ""},
			target{0.5, "Ordered/op=scan", "freehold-btree", other, "", ""})
	}
	return all
}

// judge holds every target against a run. A benchmark that did not run is left out,
// a peer that did not is said.
func judge(r *run) (all []verdict) {
	for _, t := range targets() {
		unit, on := cmp.Or(t.unit, "ns/op"), cmp.Or(t.on, t.name)
		if r.cells[t.name] == nil || r.cells[on] == nil {
			continue
		}
		v := verdict{what: fmt.Sprintf("%s %s, %s", t.peer, t.name, unit), limit: t.limit, result: "no figure for " + t.peer}
		if t.than != "" {
			v.what += fmt.Sprintf(", of %s", t.than)
			if t.on != "" {
				v.what += " " + t.on
			}
		}
		if own := r.cells[t.name][t.peer]; own.measured() {
			v.noisy, v.is = own.noisy(), own.figures(unit)
			v.figures = figure(unit, v.is.median)
			if t.than != "" {
				r.compare(&v, unit, t, on, own)
			}
			switch {
			case len(v.is.values) == 0:
				v.result = "no figure for " + cmp.Or(t.than, t.peer)
			case v.is.median <= t.limit:
				v.result = "ok"
			default:
				v.result = "MISSED"
			}
		}
		all = append(all, v)
	}
	return all
}

// compare makes v a ratio to the other figure of a target.
func (r *run) compare(v *verdict, unit string, t target, on string, own *cell) {
	other := r.cells[on][t.than]
	if t.than == fastestC {
		other = r.fastestC(on)
	}
	if !other.measured() {
		v.is = spread{}
		return
	}
	v.is = ratio(unit, own, other)
	v.figures += " / " + figure(unit, other.figures(unit).median)
	v.noisy = v.noisy || other.noisy()
}

// fastestC returns the least of the C programs' samples of a benchmark, round by
// round.
func (r *run) fastestC(name string) *cell {
	least := &cell{}
	for _, p := range programs() {
		c := r.cells[name][p.name]
		if !p.native || p.loop || c == nil {
			continue
		}
		for _, s := range c.samples {
			is, _ := s.value("ns/op")
			i := slices.IndexFunc(least.samples, func(l sample) bool { return l.round == s.round })
			if i < 0 {
				least.samples = append(least.samples, s)
			} else if was, _ := least.samples[i].value("ns/op"); is < was {
				least.samples[i] = s
			}
		}
	}
	return least
}
