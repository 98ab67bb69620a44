// Tags and guards: tables of the text that only some programs have.

package web

import (
	"github.com/freehold-go/freehold"
)

// tagTable returns the tags, which count all calls, or nil if there are none.
func (s *Snapshot) tagTable(since interval) table {
	if len(s.Tags) == 0 {
		return nil
	}
	all := table{{"tag", "live", "blocks", "peak", "allocs" + since.per, "frees" + since.per}}
	for _, t := range s.Tags {
		was := earlier(since.before.Tags, func(old freehold.TagStats) bool { return old.Tag == t.Tag })
		all = append(all, []string{t.Tag, Size(t.LiveBytes), thousands(t.Live), Size(t.PeakBytes),
			thousands(since.rise(t.Allocs, was.Allocs)), thousands(since.rise(t.Frees, was.Frees))})
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
