// The demo: the same data on the Go heap and on freehold, in one process and half a minute. Module
// lab measures the same with care, in separate processes.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/cmd/freehold/report"
	"github.com/freehold-go/freehold/internal/file/atomicfile"
	"github.com/freehold-go/freehold/internal/sysmem"
)

// demoCommand shows its measurements as text, and as a page.
type demoCommand struct {
	Nodes  int           `default:"2000000" help:"Nodes of the linked list."`
	Live   cli.Size      `default:"256MiB" help:"Bytes of live data beside the allocating load."`
	High   cli.Size      `default:"512MiB" help:"Live bytes at the top of a load that rises and falls."`
	HTML   string        `name:"html" placeholder:"FILE" help:"Also write the results as one page, which needs no network; - is standard output."`
	Time   time.Duration `hidden:"" default:"5s"`
	Settle time.Duration `hidden:"" default:"2s"`
}

func (demoCommand) Help() string {
	return examples(
		"freehold demo --html demo.html                          # and open demo.html in a browser",
		"freehold demo --nodes 200000 --live 64MiB --high 64MiB  # on a small machine",
	)
}

// argument is a size as one word of a command line.
func argument(size cli.Size) string { return strings.ReplaceAll(size.String(), " ", "") }

func (d *demoCommand) Run(ctx context.Context, s cli.Streams) error {
	if total, _ := sysmem.Memory(); total > 0 && max(int64(d.High), int64(d.Live), int64(d.Nodes)*nodeBytes) > total/4 {
		return cli.Usagef("--nodes %d, --live %v and --high %v: none may take more than a quarter of the %s of memory", d.Nodes, d.Live, d.High, cli.Bytes(total))
	}
	if d.Nodes < 1 || d.Live < 1<<20 || d.High < 1<<20 {
		return cli.Usagef("--nodes %d, --live %v and --high %v: at least one node and 1 MiB are needed", d.Nodes, d.Live, d.High)
	}
	text, html := s.Out, io.Discard
	var file *atomicfile.File // replaces the page of an earlier run at the end
	if d.HTML == "-" {
		text, html = s.Err, s.Out
	} else if d.HTML != "" {
		var err error
		if file, err = atomicfile.Create(d.HTML); err != nil {
			return cli.Usagef("cannot write %s: %w", d.HTML, err)
		}
		defer file.Close()
		html = file
	}
	page := report.Page{
		Title: "freehold demo", Lead: "The same data on the Go heap and off it, in about half a minute.",
		Facts: []string{
			version(), fmt.Sprintf("%s, %s of memory", cli.Plural(runtime.NumCPU(), "processor"), memory()), time.Now().Format("2006-01-02 15:04"),
			fmt.Sprintf("freehold demo --nodes %d --live %s --high %s, one run in one process; go run ./lab gclab and memtest use a process for each measurement.",
				d.Nodes, argument(d.Live), argument(d.High)),
		},
	}
	fmt.Fprintf(text, "%s\n%s\n", cli.Strong(text, page.Title), page.Lead)
	for _, part := range []struct {
		what string
		show func(context.Context) (report.Section, error)
	}{
		{"a linked list", d.list},
		{fmt.Sprintf("a large live heap, %v for each column", d.Time), d.collector},
		{fmt.Sprintf("memory that comes back, with waits of %v", d.Settle), d.sawtooth},
		{"mistakes", d.mistakes},
	} {
		fmt.Fprintf(text, "\nmeasuring %s\n", part.what)
		sec, err := part.show(ctx)
		if err != nil {
			return err
		}
		sec.Print(text)
		page.Sections = append(page.Sections, sec)
		debug.FreeOSMemory()
	}
	fmt.Fprintf(text, "\n%s\n", cli.Strong(text, "In short"))
	page.PrintResults(text)
	fmt.Fprintf(text, "\n%s\n", version())
	if err := page.Write(html); err != nil || file == nil {
		return err
	}
	if err := file.Commit(); err != nil {
		return err
	}
	fmt.Fprintf(text, "wrote %s\n", d.HTML)
	return nil
}

func memory() string {
	total, _ := sysmem.Memory()
	return cli.Bytes(total)
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

// timed returns how long f takes.
func timed(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

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

const nodeBytes = 56

type listFigures struct {
	Build   float64 `show:"build, ms"`
	Walk    float64 `show:"walk, ms"`
	Collect float64 `show:"one collection while it is live, ms"`
	Heap    int64   `show:"Go heap then" unit:"B"`
	Free    float64 `show:"free, ms"`
}

// list builds a linked list, walks it, collects garbage while it is live, and frees it.
func (d *demoCommand) list(ctx context.Context) (sec report.Section, err error) {
	nodes := cli.Plural(d.Nodes, "node")
	want := uint64(d.Nodes) * uint64(d.Nodes-1) / 2
	var columns []report.Column
	var collects []string
	measure := func(name, color string, build func() error, walk func() uint64, free func()) (err error) {
		var sum uint64
		var f listFigures
		f.Build = milliseconds(timed(func() { err = build() }))
		if err != nil {
			return err
		}
		f.Walk = milliseconds(timed(func() { sum = walk() }))
		if sum != want {
			return fmt.Errorf("the keys add up to %d, not %d", sum, want)
		}
		const rounds = 5
		for range rounds {
			f.Collect += milliseconds(timed(runtime.GC)) / rounds
		}
		var live runtime.MemStats
		runtime.ReadMemStats(&live)
		f.Heap = int64(live.HeapAlloc)
		f.Free = milliseconds(timed(free))
		columns = append(columns, report.Column{Name: name, Color: color, V: f})
		collects = append(collects, fmt.Sprintf("%s ms (%s)", report.Figure(f.Collect), name))
		return ctx.Err()
	}

	var head *goNode
	err = measure("Go heap", "go", func() error {
		for i := range d.Nodes {
			head = &goNode{key: uint64(i), next: head}
		}
		return nil
	}, func() (sum uint64) {
		for n := head; n != nil; n = n.next {
			sum += n.key
		}
		return sum
	}, func() { head = nil; runtime.GC() })
	if err != nil {
		return sec, err
	}
	for _, color := range []string{"freehold", "arena"} {
		heap := freehold.NewHeap(nil)
		var a freehold.Allocator = heap
		region := arena.New(heap, nil)
		name := "freehold"
		if color == "arena" {
			a, name = region, "freehold's arena"
		}
		var first freehold.Ptr[offNode]
		err := measure(name, color, func() error {
			for i := range d.Nodes {
				n, err := freehold.New[offNode](a)
				if err != nil {
					return err
				}
				n.key, n.next = uint64(i), first
				first = freehold.PtrTo(n)
			}
			return nil
		}, func() (sum uint64) {
			for n := first.Get(); n != nil; n = n.next.Get() {
				sum += n.key
			}
			return sum
		}, func() {
			for n := first.Get(); a == heap && n != nil; {
				next := n.next.Get()
				freehold.Free(a, n)
				n = next
			}
			region.Close()
		})
		heap.Close()
		if err != nil {
			return sec, err
		}
	}
	return report.Section{
		Title:   "A linked list",
		Why:     fmt.Sprintf("It has %s of %d bytes. A collection visits each node on the Go heap.", nodes, nodeBytes),
		Grids:   []report.Grid{report.Columns("", listFigures{}, columns)},
		Results: []string{fmt.Sprintf("With %s live, one collection takes %s.", nodes, report.Joined(collects))},
	}, nil
}

type collectorFigures struct {
	Share  float64 `show:"collector, % of all processors' time" unit:"%"`
	Worst  float64 `show:"worst turn of 1 ms, ms"`
	Arrays float64 `show:"arrays of 1 MiB filled a second"`
}

// collector keeps values live, as pointers or off-heap, while a goroutine for each processor but
// one allocates, and a loop takes a turn each millisecond.
func (d *demoCommand) collector(ctx context.Context) (sec report.Section, err error) {
	values := int(d.Live) / 16
	var all []collectorFigures
	measure := func() {
		gcBefore, allBefore := processorTime()
		worst, arrays := underLoad(ctx, d.Time)
		gc, time := processorTime()
		all = append(all, collectorFigures{(gc - gcBefore) / max(time-allBefore, 1e-9), milliseconds(worst), arrays})
	}
	pointers := make([]*uint64, values)
	for i := range pointers {
		v := uint64(i)
		pointers[i] = &v
	}
	runtime.GC()
	measure()
	var took runtime.MemStats
	runtime.ReadMemStats(&took)
	runtime.KeepAlive(pointers)
	pointers = nil
	runtime.GC()

	heap := freehold.NewHeap(nil)
	defer heap.Close()
	off, err := freehold.MakeSlice[uint64](heap, values)
	if err != nil {
		return sec, err
	}
	for i := range off {
		off[i] = uint64(i)
	}
	b, err := budget.Start(nil)
	if err != nil && !errors.Is(err, budget.ErrNoLimit) {
		return sec, err
	}
	measure()
	if b != nil {
		b.Stop()
	}
	limit := debug.SetMemoryLimit(int64(took.NextGC) - int64(8*values))
	percent := debug.SetGCPercent(-1)
	measure()
	debug.SetGCPercent(percent)
	debug.SetMemoryLimit(limit)
	freehold.FreeSlice(heap, off)
	where := []report.Column{{Name: "Go heap", Color: "go"}, {Name: "freehold", Color: "freehold"}, {Name: "freehold, larger Go heap", Color: "freehold"}}
	var shares, worst []string
	for i, f := range all {
		where[i].V = f
		shares = append(shares, fmt.Sprintf("%s%% (%s)", report.Percent(f.Share), where[i].Name))
		worst = append(worst, report.Figure(f.Worst)+" ms")
	}
	return report.Section{
		Title: "A large live heap",
		Why:   fmt.Sprintf("%s stay live while other goroutines allocate. They are pointers on the Go heap, or adjacent values off it.", cli.Plural(values, "value")),
		Grids: []report.Grid{report.Columns("", collectorFigures{}, where)},
		Notes: []string{
			"With the data off-heap, Go's heap is small and would be collected all the time. So freehold runs with budget.Start(nil), like a program that imports budget/auto: Go's heap grows to 64 MiB first, or in a container up to the room in its limit.",
			"Larger Go heap: it may take the memory that it took with the data on it.",
		},
		Results: []string{fmt.Sprintf("With %s live, the collector takes %s of all processors' time, and the worst turn of a loop is %s.", cli.Plural(values, "value"), report.Joined(shares), report.Joined(worst))},
	}, ctx.Err()
}

// underLoad fills arrays for some time. It returns the delay of the latest turn, and the number of
// arrays that were filled per second.
func underLoad(ctx context.Context, d time.Duration) (worst time.Duration, arrays float64) {
	ctx, stop := context.WithTimeout(ctx, d)
	defer stop()
	filled := make(chan int)
	others := max(runtime.GOMAXPROCS(0)-1, 1)
	for range others {
		go func() {
			n := 0
			for ; ctx.Err() == nil; n++ {
				array := make([]uint64, 1<<17)
				for i := range array {
					array[i] = uint64(i + n)
				}
			}
			filled <- n
		}()
	}
	began := time.Now()
	for due := began; ctx.Err() == nil; due = due.Add(time.Millisecond) {
		time.Sleep(time.Until(due))
		var last *goNode
		for range 1000 {
			last = &goNode{next: last}
		}
		worst = max(worst, time.Since(due))
	}
	total := 0
	for range others {
		total += <-filled
	}
	return worst, float64(total) / time.Since(began).Seconds()
}

type sawtoothFigures struct {
	Top   int64   `show:"from the system at the top" unit:"B"`
	Kept  int64   `show:"after the fall, and a wait" unit:"B"`
	Each  float64 `show:"that is, for each live byte"`
	Freed int64   `show:"everything freed, and a wait" unit:"B"`
}

// sawtooth allocates blocks of random size, frees most of them at random, waits, and frees the
// rest.
func (d *demoCommand) sawtooth(ctx context.Context) (sec report.Section, err error) {
	low := int(d.High) / 16
	var columns []report.Column
	var all []string
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	for _, where := range []struct {
		name  string
		color string
		alloc func(n int) ([]byte, error)
		free  func(b []byte)
		held  func() int64
	}{
		{"Go heap", "go", func(n int) ([]byte, error) { return make([]byte, n), nil }, func([]byte) {}, goHeld},
		{"freehold", "freehold", func(n int) ([]byte, error) { return heap.Alloc(n, 16) }, heap.Free, func() int64 { return int64(heap.Stats().Committed) }},
	} {
		debug.FreeOSMemory()
		random, before := rand.New(rand.NewPCG(1, 2)), where.held()
		var blocks [][]byte
		live := 0
		for live < int(d.High) {
			b, err := where.alloc(32 << random.IntN(12) * (4 + random.IntN(5)) / 8)
			if err != nil {
				return sec, err
			}
			b[0], b[len(b)-1] = 1, 1
			blocks = append(blocks, b)
			live += len(b)
		}
		top := where.held()
		fall := func(low int) {
			for live > low {
				i, last := random.IntN(len(blocks)), len(blocks)-1
				b := blocks[i]
				blocks[i], blocks[last] = blocks[last], nil
				blocks = blocks[:last]
				live -= len(b)
				where.free(b)
			}
		}
		settled := func() int64 {
			time.Sleep(d.Settle)
			return where.held() - before
		}
		fall(low)
		kept, left := settled(), live
		fall(0)
		f := sawtoothFigures{top - before, kept, float64(kept) / float64(max(left, 1)), max(settled(), 0)}
		columns = append(columns, report.Column{Name: where.name, Color: where.color, V: f})
		all = append(all, fmt.Sprintf("%s (%s)", cli.Bytes(f.Kept), where.name))
		if err := ctx.Err(); err != nil {
			return sec, err
		}
	}
	return report.Section{
		Title:   "Memory that comes back",
		Why:     fmt.Sprintf("A load rises to %v in blocks of 16 B to 64 KiB, and falls to %s. Each wait is %v.", d.High, cli.Bytes(int64(low)), d.Settle),
		Grids:   []report.Grid{report.Columns("", sawtoothFigures{}, columns)},
		Results: []string{fmt.Sprintf("After a fall from %v to %s, the process keeps %s.", d.High, cli.Bytes(int64(low)), report.Joined(all))},
	}, nil
}

// mistakes makes mistakes that are detected, and exceeds a limit, which is an error.
func (*demoCommand) mistakes(context.Context) (report.Section, error) {
	sec := report.Section{
		Title: "Mistakes, and their messages", Why: "A misuse panics at that call, and a limit that is reached is an error.",
		Results: []string{"A second Free, a Free of Go memory and an allocation beyond a limit are found at that call, in every build."},
	}
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	free := heap.Free // another name, or freeholdvet would report the mistakes at build time
	for _, m := range []struct {
		what string
		make func()
	}{
		{"free a block twice", func() {
			b, _ := heap.Alloc(64, 8)
			free(b)
			free(b)
		}},
		{"free Go memory", func() { free(make([]byte, 64)) }},
		{"allocate beyond a limit", func() {
			_, err := freehold.NewLimit(heap, 1<<10).Alloc(4<<10, 8)
			panic(err)
		}},
	} {
		func() {
			defer func() { sec.Notes = append(sec.Notes, fmt.Sprintf("%s: %v", m.what, recover())) }()
			m.make()
		}()
	}
	return sec, nil
}

// processorTime returns the processor time of the collector and of the whole process, in seconds.
func processorTime() (gc, all float64) {
	runtime.GC() // the figures are from the end of a collection
	s := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/total:cpu-seconds"}}
	metrics.Read(s)
	return s[0].Value.Float64(), s[1].Value.Float64()
}

// goHeld returns the bytes that Go's heap has from the system.
func goHeld() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/free:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() + s[1].Value.Uint64() + s[2].Value.Uint64())
}
