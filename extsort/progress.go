// Progress: how far a sort is.

package extsort

import "sync"

// Phase is what a sort does at a time.
type Phase int

const (
	PhaseReading Phase = iota // input is read, sorted and, unless it fits in memory, written to temporary files
	PhaseMerging              // there are more runs than can be merged at a time: some are merged to longer ones
	PhaseWriting              // all runs are merged to the output
)

func (p Phase) String() string { return [...]string{"reading", "merging", "writing"}[p] }

// Progress says how far a sort is. Done grows up to Total within each phase.
type Progress struct {
	Phase Phase
	Done  int64 // bytes
	Total int64 // bytes, 0 if unknown
}

// A meter reports progress, one call at a time.
type meter struct {
	mu     sync.Mutex
	report func(Progress)
	now    Progress
}

func (m *meter) begin(p Phase, total int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = Progress{Phase: p, Total: total}
	if m.report != nil {
		m.report(m.now)
	}
}

func (m *meter) add(n int64) {
	if m.report == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now.Done += n
	m.report(m.now)
}
