package watch

import (
	"testing"

	"github.com/freehold-go/freehold/internal/pages"
)

// The chains grow with the records, and give their old memory back. Each record is found, and
// few are kept in the end. Without memory for chains there are none.
func TestRecords(t *testing.T) {
	table.mu.Lock()
	defer table.mu.Unlock()
	if table.sums == nil {
		table.memory = newMemory(0)
		makeSums()
	}
	was := table.memory
	chains, records, unused, kept := table.chains, table.records, table.unused, table.kept
	defer func() {
		table.memory, table.chains, table.records, table.unused, table.kept = was, chains, records, unused, kept
	}()
	table.memory, table.chains, table.records, table.unused, table.kept = newMemory(0), nil, 0, 0, 0
	var all []*record
	for i := range 3 * minChains {
		r := newRecord()
		r.addr = uintptr(i+1) * pages.WordBytes
		r.chain()
		all = append(all, r)
	}
	if len(table.chains) != 4*minChains {
		t.Errorf("%d chains of %d records", len(table.chains), len(all))
	}
	for _, r := range all {
		if find(r.addr) != r {
			t.Fatalf("the record of %#x is not found", r.addr)
		}
		r.unchain()
		r.drop()
	}
	if table.records != 0 || table.kept != maxKept {
		t.Errorf("%d records in chains and %d kept, want 0 and %d", table.records, table.kept, maxKept)
	}
	before := table.memory.CommittedNow()
	growChains()
	if more, whole := table.memory.CommittedNow()-before, uintptr(len(table.chains))*pages.WordBytes; more >= whole {
		t.Errorf("%d bytes more for chains of %d: the old ones are there", more, whole)
	}
	table.memory, table.chains = newMemory(4096), nil
	if newRecord() != nil {
		t.Error("a record without a chain")
	}
}
