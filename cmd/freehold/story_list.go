package main

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"runtime/metrics"
	"slices"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/freehold-go/freehold"
)

// listStory builds, walks and frees a linked list: many small values with
// references between them, which is what a collector finds hardest.
type listStory struct{}

func (listStory) name() string  { return "list" }
func (listStory) title() string { return "A linked list" }
func (listStory) why() string {
	return "The collector visits every live Go value in every cycle, so a large index or cache costs time even when nobody uses it. Off-heap values are never visited."
}
func (listStory) steps() int { return 2 }

// A goNode and an offNode hold the same, but for the kind of link.
type goNode struct {
	key     uint64
	payload [40]byte
	next    *goNode
}

type offNode struct {
	key     uint64
	payload [40]byte
	next    freehold.Ptr[offNode]
}

var nodeBytes = int64(reflect.TypeFor[goNode]().Size())

// listFigures is what one backend measured. Times are in milliseconds.
type listFigures struct {
	Build   float64 `json:"build"`
	Walk    float64 `json:"walk"`
	Free    float64 `json:"free"`
	Collect float64 `json:"collect"` // one runtime.GC with the list live, the median of several
	CPU     float64 `json:"cpu"`     // processor time of such a collection, all processors together
	Cycles  int     `json:"cycles"`  // collections while the list was built

	HeapLive int64 `json:"heapLive"` // HeapAlloc after a collection, list live
	RSS      int64 `json:"rss"`      // list live
	OffLive  int64 `json:"offLive"`  // freehold's Allocated, list live
	OffLeft  int64 `json:"offLeft"`  // and after the frees
}

// measure implements story.
func (listStory) measure(ctx context.Context, set settings, backend string, report func(float64)) (any, error) {
	if backend == "go" {
		return measureGoList(ctx, set.Nodes, report)
	}
	return measureOffList(ctx, set.Nodes, report)
}

func measureGoList(ctx context.Context, n int, report func(float64)) (*listFigures, error) {
	var f listFigures
	var head *goNode
	began, cycles := time.Now(), collections()
	for i := range n {
		head = &goNode{key: uint64(i), next: head}
	}
	f.Build, f.Cycles = since(began), collections()-cycles
	report(0.3)

	began = time.Now()
	var sum uint64
	for p := head; p != nil; p = p.next {
		sum += p.key
	}
	f.Walk = since(began)
	if err := checkSum(sum, n); err != nil {
		return nil, err
	}
	if err := f.withListLive(ctx, report); err != nil {
		return nil, err
	}
	runtime.KeepAlive(head)

	began = time.Now()
	head = nil
	runtime.GC() // the only way to take the list back
	f.Free = since(began)
	return &f, nil
}

func measureOffList(ctx context.Context, n int, report func(float64)) (*listFigures, error) {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	var f listFigures
	var head freehold.Ptr[offNode]
	began, cycles := time.Now(), collections()
	for i := range n {
		p, err := freehold.New[offNode](heap)
		if err != nil {
			return nil, err
		}
		p.key, p.next = uint64(i), head
		head = freehold.PtrTo(p)
	}
	f.Build, f.Cycles = since(began), collections()-cycles
	report(0.3)

	began = time.Now()
	var sum uint64
	for p := head.Get(); p != nil; p = p.next.Get() {
		sum += p.key
	}
	f.Walk = since(began)
	if err := checkSum(sum, n); err != nil {
		return nil, err
	}
	if err := f.withListLive(ctx, report); err != nil {
		return nil, err
	}
	f.OffLive = int64(heap.Stats().Allocated)

	began = time.Now()
	for p := head.Get(); p != nil; {
		next := p.next.Get()
		freehold.Free(heap, p)
		p = next
	}
	f.Free = since(began)
	f.OffLeft = int64(heap.Stats().Allocated)
	return &f, nil
}

// withListLive measures collections and memory while the list is live.
func (f *listFigures) withListLive(ctx context.Context, report func(float64)) error {
	const rounds = 7
	var took []float64
	cpu := collectorSeconds()
	for i := range rounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		began := time.Now()
		runtime.GC()
		took = append(took, since(began))
		report(0.3 + 0.6*float64(i+1)/rounds)
	}
	slices.Sort(took)
	f.Collect = took[rounds/2]
	f.CPU = (collectorSeconds() - cpu) * 1000 / rounds
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	f.HeapLive, f.RSS = int64(mem.HeapAlloc), residentBytes()
	return nil
}

// tell implements story.
func (s listStory) tell(ctx context.Context, set settings, run runner) (section, error) {
	var goF, off listFigures
	if err := run(ctx, s, "go", &goF); err != nil {
		return section{}, err
	}
	if err := run(ctx, s, "freehold", &off); err != nil {
		return section{}, err
	}
	if off.OffLeft != 0 {
		return section{}, fmt.Errorf("every node is freed, yet freehold counts %d bytes", off.OffLeft)
	}

	g := grid{Head: []string{fmt.Sprintf("%s nodes of %d bytes", humanize.Comma(int64(set.Nodes)), nodeBytes), "Go heap", "freehold"}}
	ms := func(name string, a, b float64) { g.add(name, figure(a)+" ms", figure(b)+" ms") }
	ms("build", goF.Build, off.Build)
	ms("walk", goF.Walk, off.Walk)
	ms("free", goF.Free, off.Free)
	ms("one collection, list live", goF.Collect, off.Collect)
	ms("its processor time", goF.CPU, off.CPU)
	g.add("collections during the build", fmt.Sprint(goF.Cycles), fmt.Sprint(off.Cycles))
	g.add("Go heap, list live", sizeText(goF.HeapLive), sizeText(off.HeapLive))
	g.add("off-heap, list live", "-", sizeText(off.OffLive))
	g.add("off-heap, list freed", "-", sizeText(off.OffLeft))
	g.add("resident, list live", sizeText(goF.RSS), sizeText(off.RSS))

	return section{
		Result: fmt.Sprintf("With %s nodes live, one collection takes %s ms if they are Go values and %s ms if they are off-heap; the Go heap then holds %s and %s.",
			humanize.Comma(int64(set.Nodes)), figure(goF.Collect), figure(off.Collect), sizeText(goF.HeapLive), sizeText(off.HeapLive)),
		Charts: []chart{{
			Title: "Time, milliseconds (less is better)", Unit: "ms",
			Groups: []string{"build", "walk", "free", "one collection", "its CPU time"},
			Bars: []bars{
				{"Go heap", colorOf("go"), []float64{goF.Build, goF.Walk, goF.Free, goF.Collect, goF.CPU}},
				{"freehold", colorOf("freehold"), []float64{off.Build, off.Walk, off.Free, off.Collect, off.CPU}},
			},
		}, {
			Title: "Memory with the list live, MiB", Unit: "MiB",
			Groups: []string{"Go heap", "off-heap", "resident, whole process"},
			Bars: []bars{
				{"Go heap", colorOf("go"), []float64{mib(goF.HeapLive), 0, mib(goF.RSS)}},
				{"freehold", colorOf("freehold"), []float64{mib(off.HeapLive), mib(off.OffLive), mib(off.RSS)}},
			},
		}},
		Grids: []grid{g},
		Notes: []string{
			"free: freehold frees node by node; Go drops the list and collects, which takes back everything at once.",
			"one collection: the median of seven calls of runtime.GC; its processor time is the mean over all processors.",
		},
	}, nil
}

// checkSum verifies that a walk met every key from 0 to n-1.
func checkSum(sum uint64, n int) error {
	if want := uint64(n) * uint64(n-1) / 2; sum != want {
		return fmt.Errorf("the walk is wrong: the keys add up to %d, not %d", sum, want)
	}
	return nil
}

// collectorSeconds is the processor time of all collections so far.
func collectorSeconds() float64 {
	s := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(s)
	return s[0].Value.Float64()
}

// collections is how many collections there were.
func collections() int {
	s := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(s)
	return int(s[0].Value.Uint64())
}

func since(t time.Time) float64 { return time.Since(t).Seconds() * 1000 }

func mib(n int64) float64 { return float64(n) / (1 << 20) }
