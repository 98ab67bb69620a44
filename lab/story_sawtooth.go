package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"
	"gonum.org/v1/plot/plotter"

	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/lab/load"
	"github.com/freehold-go/freehold/lab/report"
	"github.com/freehold-go/freehold/lab/subject"
	"github.com/freehold-go/freehold/lab/wire"
)

// sawtoothStory is a short memtest on several allocators, and what memtest measures.
type sawtoothStory struct{}

func (sawtoothStory) name() string { return "sawtooth" }

func (sawtoothStory) subjects() (all, usual []string) {
	return subject.KindNames(), []string{"go", "freehold"}
}

func (s sawtoothStory) measurements(set settings) int { return len(set.subjectsOf(s)) }

func (sawtoothStory) measure(ctx context.Context, set settings, name string, tell wire.Writer) (any, error) {
	kind, err := subject.KindNamed(name)
	if err != nil {
		return nil, err
	}
	a, err := kind.Open(set.Limit)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	return set.Sawtooth.Run(ctx, a, tell)
}

// newSawtooth returns the usual load with some bytes at the top, by as many goroutines as there
// are processors if goroutines is nil.
func newSawtooth(high int64, cycles int, settle time.Duration, goroutines *int) (load.Sawtooth, error) {
	l := load.Sawtooth{Sizes: "both", High: high, Low: high / 16, Cycles: cycles, Goroutines: runtime.GOMAXPROCS(0), Seed: 1, Settle: settle}
	if goroutines != nil {
		l.Goroutines = *goroutines
	} else if high/int64(l.Goroutines) < l.Sizes.Max() {
		l.Goroutines = 1
	}
	return l, checkSawtooth(l)
}

func checkSawtooth(l load.Sawtooth) error {
	most := int64(math.MaxInt / 4)
	if total, _ := budget.Memory(); total > 0 {
		most = min(most, total)
	}
	switch {
	case l.Cycles < 1:
		return cli.Usagef("--cycles %d: at least one is needed", l.Cycles)
	case l.Goroutines < 1:
		return cli.Usagef("--goroutines %d: at least one is needed", l.Goroutines)
	case l.Settle < 0:
		return cli.Usagef("--settle %v: a time cannot be negative", l.Settle)
	case l.High/int64(l.Goroutines) < l.Sizes.Max():
		return cli.Usagef("--high %s is too little: each of the %d goroutines needs room for a chunk of up to %s",
			cli.Bytes(l.High), l.Goroutines, cli.Bytes(l.Sizes.Max()))
	case l.Low >= l.High:
		return cli.Usagef("--low %s is not below --high %s: there would be nothing to free", cli.Bytes(l.Low), cli.Bytes(l.High))
	case l.TableBytes() > float64(most):
		return cli.Usagef("--high %s: the table of that many chunks would take more than %s", cli.Bytes(l.High), cli.Bytes(most))
	}
	return nil
}

// sawtoothFigures are an outcome in short: the worst of all cycles, and the end.
type sawtoothFigures struct {
	Start       int64   `json:"start_rss" show:"resident at the start" unit:"B"`
	PeakRSS     int64   `json:"peak_rss" show:"resident, peak" unit:"B"`
	AfterFall   int64   `json:"fall_rss" show:"resident after the fall, worst" unit:"B"`
	AfterSettle int64   `json:"settle_rss" show:"resident after the decay, worst" unit:"B"`
	Live        int64   `json:"live" show:"live then" unit:"B"`
	Ratio       float64 `json:"fragmentation" show:"resident per live, worst" unit:"x"`
	EndSettle   int64   `json:"end_rss" show:"all freed, after the decay" unit:"B"`
	EndTrim     int64   `json:"trim_rss" show:"all freed, after Trim" unit:"B"`
	EndLive     int64   `json:"end_live" show:"live in the end" unit:"B"`
}

func sawtoothInShort(o *load.SawtoothOutcome) (f sawtoothFigures) {
	f.Start = o.Start
	for _, t := range o.Teeth {
		f.PeakRSS, f.AfterFall, f.AfterSettle = max(f.PeakRSS, t.PeakRSS), max(f.AfterFall, t.AfterFall), max(f.AfterSettle, t.AfterSettle)
		f.Live, f.Ratio = t.Live, max(f.Ratio, t.Ratio)
	}
	if o.End != nil {
		f.EndSettle, f.EndTrim, f.EndLive = o.End.AfterSettle, o.End.AfterTrim, o.End.Live
	}
	return f
}

func (s sawtoothStory) tell(ctx context.Context, r *reporter) (sec report.Section, csv []byte, err error) {
	l := r.set.Sawtooth
	sec = report.Section{
		Title: "Memory that comes back",
		Why:   "A service's load rises and falls. Memory that nobody uses should go back to the operating system without a collection having to find it, and without fragments keeping it.",
		Notes: []string{fmt.Sprintf("%s; %v idle after each fall.", l.Sizes.Text(), l.Settle)},
	}
	names, outcomes, err := measureEach[load.SawtoothOutcome](ctx, r, s, &sec, titleOf)
	if err != nil {
		return sec, nil, err
	}
	var titles, peaks, kept []string
	var figures []any
	var keys [][]string
	top := 0.0
	for i, name := range names {
		kind, _ := subject.KindNamed(name)
		f := sawtoothInShort(&outcomes[i])
		titles, figures, keys = append(titles, kind.Title), append(figures, f), append(keys, []string{name})
		peaks = append(peaks, cli.Bytes(f.PeakRSS)+" on the "+kind.Title)
		kept = append(kept, cli.Bytes(f.AfterSettle)+" on the "+kind.Title)
		sec.Charts = append(sec.Charts, sawtoothChart(kind, &outcomes[i]))
		sec.Notes = append(sec.Notes, kind.About+".")
		top = max(top, float64(f.PeakRSS))
	}
	for i := range sec.Charts {
		sec.Charts[i].YMax = top // one scale for all
	}
	sec.Grids = []report.Grid{report.Columns(fmt.Sprintf("%s, %s to %s", cli.Plural(l.Cycles, "cycle"), cli.Bytes(l.Low), cli.Bytes(l.High)), titles, figures)}
	sec.Result = fmt.Sprintf("A load that rises to %s peaks at %s, resident. Back at %s it keeps up to %s.",
		cli.Bytes(l.High), report.Joined(peaks), cli.Bytes(l.Low), report.Joined(kept))
	return sec, report.CSV([]string{"allocator"}, keys, figures, sawtoothFigures{}), nil
}

// sawtoothChart draws what a sawtooth measured on an allocator.
func sawtoothChart(kind subject.Kind, o *load.SawtoothOutcome) report.Chart {
	live := report.Line{Name: "live", Color: report.Live, Fill: true}
	resident := report.Line{Name: "resident", Color: report.ColorOf(kind.Name)}
	for _, x := range load.Thin(o.Samples, 600) {
		live.Points = append(live.Points, plotter.XY{X: x.Seconds, Y: float64(x.Live)})
		resident.Points = append(resident.Points, plotter.XY{X: x.Seconds, Y: float64(x.RSS)})
	}
	return report.Chart{Title: kind.Title + ": resident and live memory over time", Lines: []report.Line{live, resident}}
}

// memtestCommand runs a sawtooth for as long as the user likes.
type memtestCommand struct {
	Backend    string        `default:"freehold" help:"Allocator under test: ${kinds}."`
	Sizes      string        `default:"both" enum:"big,small,both" help:"Chunk sizes: big (16 B to 4 MiB), small (16 B to 64 KiB) or both, half of the bytes from each."`
	High       *cli.Size     `placeholder:"SIZE" help:"Live bytes at the top of a cycle, such as 16GiB; GiB or G is 1024 MiB, GB is 1000 MB. Default: half of the memory."`
	Low        *cli.Size     `placeholder:"SIZE" help:"Live bytes at its end. Default: a sixteenth of --high."`
	Cycles     int           `default:"10" help:"How many times to rise and fall."`
	Goroutines *int          `placeholder:"N" help:"How many allocate at once. Default: GOMAXPROCS."`
	Settle     time.Duration `default:"2s" help:"Idle time after each fall, for memory to go back; the heap's decay is 1s."`
	Seed       uint64        `default:"1" help:"Seed of the random sizes and choices."`
	Limit      *cli.Size     `placeholder:"SIZE" help:"Hard limit on the heap's memory, to see what happens there. Default: none."`
	Force      bool          `help:"Run although --high is more than the memory."`

	outputs
}

// plan turns the flags into settings and an allocator, or says what is wrong with them.
func (m *memtestCommand) plan() (set settings, kind subject.Kind, err error) {
	if kind, err = subject.KindNamed(m.Backend); err != nil {
		return set, kind, err
	}
	goroutines := m.Goroutines
	if goroutines == nil {
		n := runtime.GOMAXPROCS(0)
		goroutines = &n
	}
	total, _ := budget.Memory()
	l := load.Sawtooth{Sizes: load.Sizes(m.Sizes), High: total / 2, Cycles: m.Cycles, Goroutines: *goroutines, Seed: m.Seed, Settle: m.Settle}
	if m.High != nil {
		l.High = int64(*m.High)
	} else if total == 0 {
		return set, kind, cli.Usagef("--high: this system does not say how much memory there is; give a size, such as --high 4GiB")
	}
	l.Low = l.High / 16
	if m.Low != nil {
		l.Low = int64(*m.Low)
	}
	if m.Limit != nil {
		if set.Limit = int64(*m.Limit); set.Limit == 0 {
			return set, kind, cli.Usagef("--limit 0: at least a byte is needed; without --limit there is none")
		}
		if kind.Name != "freehold" {
			return set, kind, cli.Usagef("--limit: the allocator %s has no hard limit", kind.Name)
		}
	}
	if total > 0 && l.High > total && !m.Force {
		return set, kind, cli.Usagef("--high %s is more than this machine's %s of memory: the system would swap, or kill this process; choose less, or add --force",
			cli.Bytes(l.High), cli.Bytes(total))
	}
	set.Sawtooth = l
	return set, kind, checkSawtooth(l)
}

func (m *memtestCommand) Run(ctx context.Context, st cli.Streams) error {
	set, kind, err := m.plan()
	if err != nil {
		return err
	}
	l := set.Sawtooth
	what := fmt.Sprintf("%s: %s, %s to %s, %s, %s, seed %d, settle %v", kind.Name, l.Sizes.Text(), cli.Bytes(l.Low), cli.Bytes(l.High),
		cli.Plural(l.Cycles, "cycle"), cli.Plural(l.Goroutines, "goroutine"), l.Seed, l.Settle)
	if set.Limit > 0 {
		what += ", limit " + cli.Bytes(set.Limit)
	}
	r, err := newReporter(st, m.outputs, "memtest", set, 1, what)
	if err != nil {
		return err
	}
	if _, available := budget.Memory(); available > 0 && l.High > available/10*9 {
		fmt.Fprintf(st.Err, "lab: warning: only %s of memory is available now; the system may kill this process\n", cli.Bytes(available))
	}
	o := &load.SawtoothOutcome{}
	failure := r.measure(ctx, sawtoothStory{}, kind.Name, "", func(part json.RawMessage) {
		// So that a process that is killed leaves the cycles it had finished. An
		// error shows again when the run ends.
		var t load.Tooth
		if json.Unmarshal(part, &t) == nil {
			o.Teeth, o.Start = append(o.Teeth, t), t.Start
			_ = r.files.WriteCSV(teethCSV(m, o))
		}
	}, o)
	if len(o.Teeth) > 0 || o.End != nil || failure == nil {
		r.add(m.section(kind, l, o, failure))
	}
	return r.end("lab memtest: "+kind.Name, what, nil, errors.Join(failure, r.files.WriteCSV(teethCSV(m, o))))
}

// section is the report of a run, as far as it came.
func (m *memtestCommand) section(kind subject.Kind, l load.Sawtooth, o *load.SawtoothOutcome, failure error) report.Section {
	settled := l.Settle > 0 && l.Settle >= kind.Decay
	sec := report.Section{
		Title: "Does memory come back?",
		Why:   "Each cycle allocates chunks of random size up to the high mark and frees them at random down to the low one. What stays resident beyond the live bytes is what the allocator strands or keeps.",
		Notes: []string{
			"RSS is the whole process's resident memory.",
			fmt.Sprintf("The table of chunks, %s, is made before the start and is part of every RSS.", cli.Bytes(o.Table)),
			"resident per live, the fragmentation = (RSS after settle − RSS at the start) / live; live counts the bytes asked for.",
			"Chunks are freed whole, so each goroutine's fall ends up to one chunk below its part of --low.",
			kind.About + ".",
		},
	}
	if !settled {
		sec.Notes = append(sec.Notes, fmt.Sprintf("A settle of %v gives memory no time to go back: the decay is %v.", l.Settle, kind.Decay))
	}
	if len(o.Samples) > 0 {
		sec.Charts = []report.Chart{sawtoothChart(kind, o)}
	}
	if len(o.Teeth) > 0 {
		var cycles []string
		for i := range o.Teeth {
			cycles = append(cycles, strconv.Itoa(i+1))
		}
		sec.Grids = append(sec.Grids, report.Rows("cycle", cycles, anys(o.Teeth)))
	}
	f := sawtoothInShort(o)
	ends := report.Grid{Head: []string{"everything freed", "RSS"}}
	ends.Add("at the start", cli.Bytes(o.Start))
	if o.End != nil {
		ends.Add("right after", cli.Bytes(o.End.AfterFall))
		ends.Add("after settle", cli.Bytes(o.End.AfterSettle))
		ends.Add("after Trim", cli.Bytes(o.End.AfterTrim))
	}
	sec.Grids = append(sec.Grids, ends)
	if failure != nil {
		sec.Result = fmt.Sprintf("Ended after %s: %v.", cli.Plural(len(o.Teeth), "full cycle"), failure)
		return sec
	}
	when := "Settled"
	if !settled {
		when = "After a fall"
	}
	sec.Result = fmt.Sprintf("%s chunks, every one checked before it was freed. %s, at most %.3f resident for each live byte. In the end %s live and %s more resident than at the start.",
		humanize.Comma(o.Chunks), when, f.Ratio, cli.Bytes(f.EndLive), cli.Bytes(max(0, f.EndTrim-o.Start)))
	return sec
}

// teethCSV has a row for each finished cycle and, if it came that far, one for when everything is
// freed.
func teethCSV(m *memtestCommand, o *load.SawtoothOutcome) []byte {
	var keys [][]string
	teeth := anys(o.Teeth)
	for i := range o.Teeth {
		keys = append(keys, []string{m.Backend, m.Sizes, strconv.Itoa(i + 1), strconv.FormatInt(o.Start, 10)})
	}
	if o.End != nil {
		keys = append(keys, []string{m.Backend, m.Sizes, "end", strconv.FormatInt(o.Start, 10)})
		teeth = append(teeth, load.Tooth{PeakRSS: -1, AfterFall: o.End.AfterFall, AfterSettle: o.End.AfterTrim, Live: o.End.Live, Ratio: -1})
	}
	return report.CSV([]string{"allocator", "sizes", "cycle", "start_rss"}, keys, teeth, load.Tooth{})
}
