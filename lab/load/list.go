package load

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/freehold-go/freehold/lab/run"
	"github.com/freehold-go/freehold/lab/subject"
)

// ListFigures is what one kind of list measured.
type ListFigures struct {
	Build   float64 `json:"build_ms" show:"build, ms"`
	Walk    float64 `json:"walk_ms" show:"walk, ms"`
	Free    float64 `json:"free_ms" show:"free, ms"`
	Collect float64 `json:"collect_ms" show:"one collection, list live, ms"` // the median of several
	CPU     float64 `json:"collect_cpu_ms" show:"its processor time, ms"`    // all processors together
	Cycles  int     `json:"cycles" show:"collections during the build" unit:"n"`

	HeapLive  int64 `json:"heap_live" show:"Go heap, list live" unit:"B"` // after a collection
	OffBefore int64 `json:"off_before" show:"off-heap, before" unit:"B"`
	OffLive   int64 `json:"off_live" show:"off-heap, list live" unit:"B"`
	OffLeft   int64 `json:"off_left" show:"off-heap, list freed" unit:"B"`
	RSS       int64 `json:"rss" show:"resident, list live" unit:"B"`
}

// List builds, walks and frees a linked list: many small values with references between them,
// the hardest data for a collector.
func List(m subject.Memory, nodes int, tell run.Writer) (*ListFigures, error) {
	l, err := m.List(1)
	if err != nil {
		return nil, err
	}
	f := &ListFigures{OffBefore: l.Bytes()}
	before := readCollector()
	if f.Build = milliseconds(func() {
		for i := 0; i < nodes && err == nil; i++ {
			err = l.Put(i)
		}
	}); err != nil {
		return nil, err
	}
	f.Cycles = int(readCollector().cycles - before.cycles)
	tell.Progress(0.3, "")
	var sum uint64
	f.Walk = milliseconds(func() { sum = l.Sum() })
	if want := subject.SumOf(nodes); sum != want {
		return nil, fmt.Errorf("the walk is wrong: the keys add up to %d, not %d", sum, want)
	}

	const rounds = 7
	var took []float64
	before = readCollector()
	for i := range rounds {
		took = append(took, milliseconds(runtime.GC))
		tell.Progress(0.3+0.6*float64(i+1)/rounds, "")
	}
	slices.Sort(took)
	f.Collect, f.CPU = took[rounds/2], (readCollector().gc-before.gc)*1000/rounds
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	f.HeapLive, f.RSS, f.OffLive = int64(mem.HeapAlloc), run.Resident(), l.Bytes()

	f.Free = milliseconds(l.Free)
	f.OffLeft = l.Bytes()
	if live := l.Live(); live != 0 {
		return f, fmt.Errorf("every node is freed, yet %d are live", live)
	}
	return f, nil
}

func milliseconds(f func()) float64 {
	began := time.Now()
	f()
	return time.Since(began).Seconds() * 1000
}
