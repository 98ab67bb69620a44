package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/shirou/gopsutil/v4/disk"
)

// sortStory creates small records, sorts and verifies them.
type sortStory struct{}

func (sortStory) name() string  { return "sort" }
func (sortStory) title() string { return "Millions of records, sorted" }
func (sortStory) why() string {
	return "Small Go values cost a pointer and the collector's time each. Records in a buffer cost their bytes, are sorted in place, and go to temporary files when there are more of them than memory holds."
}

// backends implements story.
func (sortStory) backends() (all, usual []string) {
	all = []string{goBackend.name, freeholdBackend.name}
	return all, all
}

// A count is a number on the command line: 1000000, 1_000_000 or 1e6.
type count int64

func (c *count) UnmarshalText(text []byte) error {
	v, err := strconv.ParseFloat(strings.ReplaceAll(string(text), "_", ""), 64)
	if err != nil || v != math.Trunc(v) || v < 1 || v > maxRecords {
		return fmt.Errorf("%q is no number from 1 to 1e12", text)
	}
	*c = count(v)
	return nil
}

const maxRecords = 1e12

// usualMemory is what a sort may take where nothing else is said, if the machine has
// twice of that available.
const usualMemory = 4 << 30

// sortMemory returns the memory that the story's sort may take.
func (d *demoCommand) sortMemory() int64 {
	if d.Memory != nil {
		return int64(*d.Memory)
	}
	usual := min(int64(usualMemory), math.MaxInt/2)
	if _, available := machineMemory(); available > 0 {
		usual = min(usual, available/2)
	}
	return max(usual, leastDefault)
}

// checkSort says what is wrong with the story's settings, before anything runs.
func checkSort(set settings) error {
	if set.Memory < leastDefault {
		return usagef("--memory %s: at least %s is needed", sizeText(set.Memory), sizeText(leastDefault))
	}
	if set.Memory > math.MaxInt/2 {
		return usagef("--memory %s is more than this system can address", sizeText(set.Memory))
	}
	if !spills(set.Records, set.Memory) {
		return nil
	}
	usage, err := disk.Usage(os.TempDir())
	if err != nil {
		return nil // the sort will say it if there is too little
	}
	need := uint64(set.Records*recordBytes) / 100 * 101
	if usage.Free < need {
		return usagef("--records %s: temporary files of %s are needed, and %s has %s free; set TMPDIR to another folder, or allow more than %s by --memory",
			humanize.Comma(set.Records), sizeText(int64(need)), os.TempDir(), sizeText(int64(usage.Free)), sizeText(set.Memory))
	}
	return nil
}

// measurements implements story.
func (s sortStory) measurements(set settings) int { return len(set.backendsOf(s)) }

// measure implements story.
func (sortStory) measure(ctx context.Context, set settings, backend string, report func(float64)) (any, error) {
	s := recordSort{n: set.Records, memory: set.Memory, report: seldom(report)}
	run := s.inBuffer
	switch {
	case backend == goBackend.name:
		// A value, its pointer, and as much again until the collector has run.
		const goBytes = 2 * (recordBytes + 8)
		if _, available := machineMemory(); available > 0 && set.Records > available/goBytes {
			return nil, unavailablef("%s: %s records of %d bytes as Go values take up to %s, and %s is available",
				backend, humanize.Comma(set.Records), recordBytes, sizeText(set.Records*goBytes), sizeText(available))
		}
		run = s.onGoHeap
	case backend != freeholdBackend.name:
		return nil, fmt.Errorf("the sort story has no backend called %q", backend)
	case spills(set.Records, set.Memory):
		run = s.inFiles
	}
	m := newMeter(func() int64 { return 0 })
	stop := m.watch(func(sample) {})
	cycles, cpu := collections(), collectorSeconds()
	err := run(ctx)
	s.f.Cycles, s.f.CPU = collections()-cycles-1, (collectorSeconds()-cpu)*1000
	m.take()
	stop()
	s.f.PeakRSS = m.takePeak()
	return &s.f, err
}

// tell implements story.
func (s sortStory) tell(ctx context.Context, set settings, run runner) (section, error) {
	var sec section
	var names, titles []string
	var figures []recordFigures
	for _, name := range set.backendsOf(s) {
		var f recordFigures
		err := run(ctx, s, name, &f)
		if sec.skipped(err) {
			continue
		}
		if err != nil {
			return section{}, err
		}
		names, titles, figures = append(names, name), append(titles, titleOf(name)), append(figures, f)
	}
	if len(figures) == 0 {
		return section{}, unavailablef("%s", joined(sec.Notes))
	}

	records := plural(set.Records, "record")
	g := grid{Head: append([]string{fmt.Sprintf("%s of %d bytes", records, recordBytes)}, titles...)}
	row := func(name string, cell func(f recordFigures) string) {
		cells := []string{name}
		for _, f := range figures {
			cells = append(cells, cell(f))
		}
		g.add(cells...)
	}
	ms := func(v float64) string {
		if v == 0 {
			return "-"
		}
		return figure(v)
	}
	size := func(n int64) string {
		if n == 0 {
			return "-"
		}
		return sizeText(n)
	}
	row("create, ms", func(f recordFigures) string { return ms(f.Create) })
	row("sort, ms", func(f recordFigures) string { return ms(f.Sort) })
	row("verify, ms", func(f recordFigures) string { return ms(f.Verify) })
	row("in all, ms", func(f recordFigures) string { return ms(f.all()) })
	row("collections meanwhile", func(f recordFigures) string { return fmt.Sprint(f.Cycles) })
	row("one more, records live, ms", func(f recordFigures) string { return figure(f.Collect) })
	row("collector's processor time, ms", func(f recordFigures) string { return figure(f.CPU) })
	row("Go heap, records live", func(f recordFigures) string { return sizeText(f.HeapLive) })
	row("off-heap, records live", func(f recordFigures) string { return size(f.OffLive) })
	row("in temporary files", func(f recordFigures) string { return size(f.Disk) })
	row("resident, peak", func(f recordFigures) string { return sizeText(f.PeakRSS) })
	sec.Grids = []grid{g}

	times := chart{Title: "Time, milliseconds (less is better)", Unit: "ms", Groups: []string{"create", "sort", "verify", "one collection"}}
	memory := chart{Title: "Memory, MiB", Unit: "MiB", Groups: []string{"Go heap", "off-heap", "resident, peak"}}
	var took []string
	for i, f := range figures {
		color := colorOf(names[i])
		times.Bars = append(times.Bars, bars{titles[i], color, []float64{f.Create, f.Sort, f.Verify, f.Collect}})
		memory.Bars = append(memory.Bars, bars{titles[i], color, []float64{mib(f.HeapLive), mib(f.OffLive), mib(f.PeakRSS)}})
		how := "as Go values"
		switch {
		case f.Disk > 0:
			how = "in temporary files"
		case names[i] == freeholdBackend.name:
			how = "in a buffer"
		}
		took = append(took, fmt.Sprintf("%s %s (resident at most %s)", duration(f.all()), how, sizeText(f.PeakRSS)))
		if f.Disk > 0 {
			sec.Notes = append(sec.Notes, fmt.Sprintf("temporary files: in memory the sort would need more than %s. Records are made while it reads, and verified while it writes: create is the time until the last one was read, sort is the rest.", sizeText(set.Memory)))
		}
	}
	sec.Charts = []chart{times, memory}
	sec.Result = fmt.Sprintf("%s of %d bytes created, sorted and verified in %s.", records, recordBytes, joined(took))
	sec.Notes = append(sec.Notes,
		"Go heap: pointers to structs, sorted by slices.SortFunc, on one processor.",
		"freehold: the bytes in a buffer, sorted by SortByUint64 or extsort.Sort, which keep the order of equal keys, on all processors.",
		"verify: keys ascend, and every record is there once and undamaged.")
	return sec, nil
}

func (f recordFigures) all() float64 { return f.Create + f.Sort + f.Verify }
