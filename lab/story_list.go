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
	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// listStory builds, walks and frees a linked list: many small values with
// references between them, which is what a collector finds hardest.
type listStory struct{}

func (listStory) name() string  { return "list" }
func (listStory) title() string { return "A linked list" }
func (listStory) why() string {
	return "The collector visits every live Go value in every cycle, so a large index or cache costs time even when nobody uses it. Off-heap values are never visited."
}

// A contender is one way to hold the list. Each has a file of its own,
// list_NAME.go, and a place in contenders. One that has a backend's name runs in
// processes that can have that backend.
type contender struct {
	name  string
	title string
	frees string // how the list is freed there
	open  func() (list, error)
}

var contenders = []contender{goContender, freeholdContender, arenaContender, poolContender, libcContender, jemallocContender}

// A list is empty when it is opened; its methods are called once each, in this
// order.
type list interface {
	// build adds n nodes, with the keys from 0 to n-1.
	build(n int) error
	// walk returns the sum of all keys.
	walk() uint64
	// free takes all nodes back.
	free()
	// end closes what the list was in. The error says that nodes are left.
	end() error

	// offHeap returns the bytes in live blocks, by the allocator's own figures,
	// at any time; -1 if it has none.
	offHeap() int64
}

var nodeBytes = int64(reflect.TypeFor[goNode]().Size())

// listFigures is what one contender measured. Times are in milliseconds.
type listFigures struct {
	Build   float64 `json:"build"`
	Walk    float64 `json:"walk"`
	Free    float64 `json:"free"`
	Collect float64 `json:"collect"` // one runtime.GC with the list live, the median of several
	CPU     float64 `json:"cpu"`     // processor time of such a collection, all processors together
	Cycles  int     `json:"cycles"`  // collections while the list was built

	HeapLive  int64 `json:"heapLive"`  // HeapAlloc after a collection, list live
	RSS       int64 `json:"rss"`       // list live
	OffBefore int64 `json:"offBefore"` // bytes in live blocks before the list, -1 if nobody knows
	OffLive   int64 `json:"offLive"`   // list live
	OffLeft   int64 `json:"offLeft"`   // list freed
}

// backends implements story.
func (listStory) backends() (all, usual []string) {
	for _, c := range contenders {
		all = append(all, c.name)
	}
	return all, all
}

// measurements implements story.
func (s listStory) measurements(set settings) int { return len(set.backendsOf(s)) }

// measure implements story.
func (listStory) measure(ctx context.Context, set settings, backend string, report func(float64)) (any, error) {
	c, err := contenderNamed(backend)
	if err != nil {
		return nil, err
	}
	l, err := c.open()
	if err != nil {
		return nil, err
	}
	f := listFigures{OffBefore: l.offHeap()}

	began, cycles := time.Now(), collections()
	if err := l.build(set.Nodes); err != nil {
		return nil, err
	}
	f.Build, f.Cycles = since(began), collections()-cycles
	report(0.3)

	began = time.Now()
	sum := l.walk()
	f.Walk = since(began)
	if err := checkSum(sum, set.Nodes); err != nil {
		return nil, err
	}
	if err := f.withListLive(ctx, report); err != nil {
		return nil, err
	}
	f.OffLive = l.offHeap()

	began = time.Now()
	l.free()
	f.Free = since(began)
	f.OffLeft = l.offHeap()
	return &f, l.end()
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
	var sec section
	var measured []contender
	var figures []listFigures
	frees := map[string][]string{} // how, to the titles of those
	var ways []string              // the keys of frees, in order
	for _, name := range set.backendsOf(s) {
		c, err := contenderNamed(name)
		if err != nil {
			return section{}, err
		}
		var f listFigures
		err = run(ctx, s, name, &f)
		if sec.skipped(err) {
			continue
		}
		if err != nil {
			return section{}, err
		}
		measured, figures = append(measured, c), append(figures, f)
		if frees[c.frees] == nil {
			ways = append(ways, c.frees)
		}
		frees[c.frees] = append(frees[c.frees], c.title)
	}
	if len(figures) == 0 {
		return section{}, unavailablef("%s", joined(sec.Notes))
	}

	g := grid{Head: []string{fmt.Sprintf("%s nodes of %d bytes", humanize.Comma(int64(set.Nodes)), nodeBytes)}}
	for _, c := range measured {
		g.Head = append(g.Head, c.title)
	}
	row := func(name string, cell func(f listFigures) string) {
		cells := []string{name}
		for _, f := range figures {
			cells = append(cells, cell(f))
		}
		g.add(cells...)
	}
	bytes := func(n int64) string {
		if n < 0 {
			return "-"
		}
		return cli.Bytes(n)
	}
	row("build, ms", func(f listFigures) string { return figure(f.Build) })
	row("walk, ms", func(f listFigures) string { return figure(f.Walk) })
	row("free, ms", func(f listFigures) string { return figure(f.Free) })
	row("one collection, list live, ms", func(f listFigures) string { return figure(f.Collect) })
	row("its processor time, ms", func(f listFigures) string { return figure(f.CPU) })
	row("collections during the build", func(f listFigures) string { return fmt.Sprint(f.Cycles) })
	row("Go heap, list live", func(f listFigures) string { return cli.Bytes(f.HeapLive) })
	row("off-heap, before", func(f listFigures) string { return bytes(f.OffBefore) })
	row("off-heap, list live", func(f listFigures) string { return bytes(f.OffLive) })
	row("off-heap, list freed", func(f listFigures) string { return bytes(f.OffLeft) })
	row("resident, list live", func(f listFigures) string { return cli.Bytes(f.RSS) })

	times := chart{
		Title: "Time, milliseconds (less is better)", Unit: "ms",
		Groups: []string{"build", "walk", "free", "one collection", "its CPU time"},
	}
	memory := chart{
		Title: "Memory with the list live, MiB", Unit: "MiB",
		Groups: []string{"Go heap", "off-heap", "resident, whole process"},
	}
	for i, c := range measured {
		f := figures[i]
		times.Bars = append(times.Bars, bars{c.title, colorOf(c.name), []float64{f.Build, f.Walk, f.Free, f.Collect, f.CPU}})
		memory.Bars = append(memory.Bars, bars{c.title, colorOf(c.name), []float64{mib(f.HeapLive), mib(max(0, f.OffLive)), mib(f.RSS)}})
	}
	sec.Charts = []chart{times, memory}
	sec.Grids = []grid{g}
	sec.Result = listResult(set.Nodes, measured, figures)
	for _, way := range ways {
		sec.Notes = append(sec.Notes, "free, "+joined(frees[way])+": "+way+".")
	}
	sec.Notes = append(sec.Notes,
		"off-heap: bytes in live blocks, as the allocator counts them.",
		"one collection: the median of seven calls of runtime.GC; its processor time is the mean over all processors.")
	return sec, nil
}

// listResult says what a collection costs and what the Go heap holds, of each contender.
func listResult(nodes int, measured []contender, figures []listFigures) string {
	var parts, heaps []string
	for i, c := range measured {
		parts = append(parts, fmt.Sprintf("%s ms (%s)", figure(figures[i].Collect), c.title))
		heaps = append(heaps, cli.Bytes(figures[i].HeapLive))
	}
	return fmt.Sprintf("With %s nodes live, one collection takes %s; the Go heap then holds %s.",
		humanize.Comma(int64(nodes)), joined(parts), joined(heaps))
}

// contenderNamed returns the contender called name.
func contenderNamed(name string) (contender, error) {
	for _, c := range contenders {
		if c.name == name {
			return c, nil
		}
	}
	return contender{}, fmt.Errorf("no contender of the list is called %q", name)
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
