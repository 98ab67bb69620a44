// The demo: what the Go heap and freehold do with the same data, in one process and half a
// minute. Package lab measures the same with care, in processes of their own.

package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/internal/sysmem"
)

// demoCommand shows what it measures as text.
type demoCommand struct {
	Nodes  int           `default:"2000000" help:"Nodes of the linked list."`
	Live   cli.Size      `default:"256MiB" help:"Data that is live while others allocate."`
	High   cli.Size      `default:"512MiB" help:"Live bytes at the top of a load that rises and falls."`
	Time   time.Duration `hidden:"" default:"5s"`
	Settle time.Duration `hidden:"" default:"2s"`
}

func (d *demoCommand) Run(ctx context.Context, s cli.Streams) error {
	if total, _ := sysmem.Memory(); total > 0 && max(int64(d.High), int64(d.Live), int64(d.Nodes)*nodeBytes) > total/4 {
		return cli.Usagef("--nodes %d, --live %v and --high %v: none may take more than a quarter of the %s of memory", d.Nodes, d.Live, d.High, cli.Bytes(total))
	}
	if d.Nodes < 1 || d.Live < 1<<20 || d.High < 1<<20 {
		return cli.Usagef("--nodes %d, --live %v and --high %v: at least one node and 1 MiB are needed", d.Nodes, d.Live, d.High)
	}
	fmt.Fprintf(s.Out, "freehold demo: the same data on the Go heap and off it, in about half a minute\n%s\n", version())
	for _, show := range []func(context.Context, io.Writer) error{d.list, d.collector, d.sawtooth, d.mistakes} {
		fmt.Fprintln(s.Out)
		if err := show(ctx, s.Out); err != nil {
			return err
		}
		debug.FreeOSMemory()
	}
	return nil
}

// A row of a table begins with its name. The columns of figures are aligned to the right.
func printTable(w io.Writer, rows ...[]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	widest := 0
	for _, row := range rows {
		widest = max(widest, len(row[0]))
	}
	for _, row := range rows {
		fmt.Fprintf(t, "  %-*s\t%s\t\n", widest, row[0], strings.Join(row[1:], "\t"))
	}
	t.Flush()
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()*1000) }

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

// list builds a linked list, walks it, collects garbage while it is live, and frees it.
func (d *demoCommand) list(ctx context.Context, w io.Writer) error {
	fmt.Fprintf(w, "A linked list of %s of %d bytes. A collection visits each that is on the Go heap.\n\n", cli.Plural(d.Nodes, "node"), nodeBytes)
	rows := [][]string{{""}, {"build, ms"}, {"walk, ms"}, {"one collection while it is live, ms"}, {"Go heap then"}, {"free, ms"}}
	want := uint64(d.Nodes) * uint64(d.Nodes-1) / 2
	measure := func(name string, build func() error, walk func() uint64, free func()) (err error) {
		var sum uint64
		var collects time.Duration
		var live runtime.MemStats
		built := timed(func() { err = build() })
		if err != nil {
			return err
		}
		walked := timed(func() { sum = walk() })
		if sum != want {
			return fmt.Errorf("the keys add up to %d, not %d", sum, want)
		}
		const rounds = 5
		for range rounds {
			collects += timed(runtime.GC)
		}
		runtime.ReadMemStats(&live)
		freed := timed(free)
		for i, cell := range []string{name, milliseconds(built), milliseconds(walked), milliseconds(collects / rounds), cli.Bytes(int64(live.HeapAlloc)), milliseconds(freed)} {
			rows[i] = append(rows[i], cell)
		}
		return ctx.Err()
	}

	var head *goNode
	err := measure("Go heap", func() error {
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
		return err
	}
	for _, where := range []string{"freehold.Heap", "arena.Arena"} {
		heap := freehold.NewHeap(nil)
		var a freehold.Allocator = heap
		region := arena.New(heap, nil)
		if where == "arena.Arena" {
			a = region
		}
		var first freehold.Ptr[offNode]
		err := measure(where, func() error {
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
			return err
		}
	}
	printTable(w, rows...)
	return nil
}

// collector keeps values live, as pointers or off-heap, while a goroutine for each processor
// allocates, and a loop takes a turn each millisecond.
func (d *demoCommand) collector(ctx context.Context, w io.Writer) error {
	values := int(d.Live) / 16
	fmt.Fprintf(w, "%s live, as pointers on the Go heap or side by side off it, while others allocate.\n\n", cli.Plural(values, "value"))
	rows := [][]string{{""}, {"collector, % of all processors' time"}, {"worst turn of 1 ms, ms"}, {"arrays of 1 MiB filled a second"}}
	measure := func(name string) {
		gcBefore, allBefore := processorTime()
		worst, arrays := underLoad(ctx, d.Time)
		gc, all := processorTime()
		for i, cell := range []string{name, fmt.Sprintf("%.1f", 100*(gc-gcBefore)/max(all-allBefore, 1e-9)), milliseconds(worst), fmt.Sprintf("%.0f", arrays)} {
			rows[i] = append(rows[i], cell)
		}
	}
	pointers := make([]*uint64, values)
	for i := range pointers {
		v := uint64(i)
		pointers[i] = &v
	}
	runtime.GC()
	measure("[]*uint64, Go heap")
	var took runtime.MemStats
	runtime.ReadMemStats(&took)
	runtime.KeepAlive(pointers)
	pointers = nil
	runtime.GC()

	heap := freehold.NewHeap(nil)
	defer heap.Close()
	off, err := freehold.MakeSlice[uint64](heap, values)
	if err != nil {
		return err
	}
	for i := range off {
		off[i] = uint64(i)
	}
	measure("[]uint64, freehold")
	limit := debug.SetMemoryLimit(int64(took.NextGC) - int64(8*values))
	percent := debug.SetGCPercent(-1)
	measure("in as much memory")
	debug.SetGCPercent(percent)
	debug.SetMemoryLimit(limit)
	freehold.FreeSlice(heap, off)
	printTable(w, rows...)
	fmt.Fprint(w, "\nWith the data off it Go's heap is small, so it is collected often, if quickly.\nIn the last column it may take what it took in the first, as package budget lets it.\n")
	return ctx.Err()
}

// underLoad fills arrays for some time, and returns how late the worst of the turns was done
// and how many arrays were filled a second.
func underLoad(ctx context.Context, d time.Duration) (worst time.Duration, arrays float64) {
	ctx, stop := context.WithTimeout(ctx, d)
	defer stop()
	filled := make(chan int)
	for range runtime.GOMAXPROCS(0) {
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
	for range runtime.GOMAXPROCS(0) {
		total += <-filled
	}
	return worst, float64(total) / time.Since(began).Seconds()
}

// sawtooth allocates blocks of random size, frees most of them at random, waits, and frees the
// rest.
func (d *demoCommand) sawtooth(ctx context.Context, w io.Writer) error {
	low := int(d.High) / 16
	fmt.Fprintf(w, "A load that rises to %v in blocks of 16 B to 64 KiB, and falls to %s.\n\n", d.High, cli.Bytes(int64(low)))
	rows := [][]string{{""}, {"from the system at the top"}, {fmt.Sprintf("%v after the fall", d.Settle)}, {"that is, for each live byte"}, {"everything freed"}}
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	for _, where := range []struct {
		name  string
		alloc func(n int) ([]byte, error)
		free  func(b []byte)
		held  func() int64
	}{
		{"Go heap", func(n int) ([]byte, error) { return make([]byte, n), nil }, func([]byte) {}, goHeld},
		{"freehold", func(n int) ([]byte, error) { return heap.Alloc(n, 16) }, heap.Free, func() int64 { return int64(heap.Stats().Committed) }},
	} {
		debug.FreeOSMemory()
		random, before := rand.New(rand.NewPCG(1, 2)), where.held()
		var blocks [][]byte
		live := 0
		for live < int(d.High) {
			b, err := where.alloc(32 << random.IntN(12) * (4 + random.IntN(5)) / 8)
			if err != nil {
				return err
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
		for i, cell := range []string{where.name, cli.Bytes(top - before), cli.Bytes(kept), fmt.Sprintf("%.2f", float64(kept)/float64(max(left, 1))), cli.Bytes(settled())} {
			rows[i] = append(rows[i], cell)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	printTable(w, rows...)
	return nil
}

// mistakes makes some that are detected, and passes a limit, which is an error.
func (*demoCommand) mistakes(_ context.Context, w io.Writer) error {
	fmt.Fprint(w, "Mistakes, and what they say:\n\n")
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	free := heap.Free // by another name, or freeholdvet would find them at build time
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
			defer func() { fmt.Fprintf(w, "  %s:\n    %v\n", m.what, recover()) }()
			m.make()
		}()
	}
	return nil
}

// processorTime returns what the collector and all of the process have used, in seconds.
func processorTime() (gc, all float64) {
	runtime.GC() // the figures are as of a collection's end
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
