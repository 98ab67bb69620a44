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

// Progress says how far a sort is. Within each phase Done grows up to Total, which may
// shrink while runs are merged, as Unique drops records.
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

// begin begins a phase of total bytes, or says how much is left of it.
func (m *meter) begin(p Phase, total int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p != m.now.Phase {
		m.now.Done = 0
	}
	m.now = Progress{Phase: p, Done: m.now.Done, Total: m.now.Done + total}
	if m.report != nil {
		m.report(m.now)
	}
}

// add adds bytes that have been read. It does nothing if m is nil.
func (m *meter) add(n int64) {
	if m == nil || m.report == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now.Done += n
	m.report(m.now)
}
