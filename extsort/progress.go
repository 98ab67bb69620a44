// Progress: how far a sort is.

package extsort

import "sync"

// Phase is a phase of a sort.
type Phase int

const (
	PhaseReading Phase = iota // reads and sorts input, and writes it to temporary files unless it fits in memory
	PhaseMerging              // merges sorted runs to fewer and longer ones, if there are too many to merge at once
	PhaseWriting              // merges all runs to the output
)

func (p Phase) String() string { return [...]string{"reading", "merging", "writing"}[p] }

// Progress says how far a sort is. Within each phase Done grows up to Total. Total may
// shrink while runs are merged, because Unique drops records.
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

// begin begins a phase of total bytes. If it is the current phase, total bytes are left of it.
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

// progressBytes is how many bytes a merge takes between two reports, and between two checks
// of the context.
const progressBytes = 1 << 20

// add adds bytes that have been read. It is a no-op if m is nil.
func (m *meter) add(n int64) {
	if m == nil || m.report == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now.Done += n
	m.report(m.now)
}
