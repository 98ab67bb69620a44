// Tags and guards: tables of the text that only some programs have.

package web

import (
	"math"

	"github.com/freehold-go/freehold"
)

// tagTable returns the tags, which count all calls, or nil if there are none.
func (s *Snapshot) tagTable(before *Snapshot) table {
	if len(s.Tags) == 0 {
		return nil
	}
	per, seconds := "", 1.0 // since the start
	was := map[string]freehold.Counts{}
	if before != nil {
		per, seconds = "/s", s.Time.Sub(before.Time).Seconds()
		for _, t := range before.Tags {
			was[t.Tag] = t.Counts
		}
	}
	rise := func(now, was uint64) string { return thousands(int(math.Round(float64(now-was) / seconds))) }
	all := table{{"tag", "live", "blocks", "peak", "allocs" + per, "frees" + per}}
	for _, t := range s.Tags {
		all = append(all, []string{t.Tag, Size(t.LiveBytes), thousands(t.Live), Size(t.PeakBytes),
			rise(t.Allocs, was[t.Tag].Allocs), rise(t.Frees, was[t.Tag].Frees)})
	}
	return all
}

// guardTable returns the guards of the heaps that have had any, or nil.
func (s *Snapshot) guardTable() table {
	var all table
	for _, st := range s.Heaps {
		if st.GuardedEver == 0 && st.GuardsSkipped == 0 {
			continue
		}
		if all == nil {
			all = table{{"guards of", "live", "ever", "skipped"}}
		}
		all = append(all, []string{st.Name, thousands(st.Guarded), thousands(int(st.GuardedEver)), thousands(int(st.GuardsSkipped))})
	}
	return all
}
