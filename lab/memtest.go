package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// memtestCommand runs a sawtooth for as long as the user likes.
type memtestCommand struct {
	Backend    string        `default:"freehold" help:"Allocator under test: ${backends}."`
	Sizes      string        `default:"both" enum:"big,small,both" help:"Chunk sizes: big (16 B to 4 MiB), small (16 B to 64 KiB) or both, half of the bytes from each."`
	High       *cli.Size     `placeholder:"SIZE" help:"Live bytes at the top of a cycle, such as 16GiB; GiB or G is 1024 MiB, GB is 1000 MB. Default: half of the memory."`
	Low        *cli.Size     `placeholder:"SIZE" help:"Live bytes at its end. Default: a sixteenth of --high."`
	Cycles     int           `default:"10" help:"How many times to rise and fall."`
	Goroutines *int          `placeholder:"N" help:"How many allocate at once. Default: GOMAXPROCS."`
	Settle     time.Duration `default:"2s" help:"Idle time after each fall, for memory to go back; the heap's decay is 1s."`
	Seed       uint64        `default:"1" help:"Seed of the random sizes and choices."`
	Limit      *cli.Size     `placeholder:"SIZE" help:"Hard limit on the heap's memory, to see what happens there. Default: none."`
	Force      bool          `help:"Run although --high is more than the memory."`

	CSV  filePath `name:"csv" placeholder:"FILE" help:"Write a row per cycle, after each cycle; - is standard output."`
	PNG  filePath `name:"png" placeholder:"FILE" help:"Write a chart of resident and live memory over time."`
	HTML filePath `name:"html" placeholder:"FILE" help:"Write the report as one page that needs no network."`
}

// plan turns the flags into a load, or says what is wrong with them.
func (m *memtestCommand) plan() (load, backendKind, error) {
	fail := func(format string, a ...any) (load, backendKind, error) {
		return load{}, backendKind{}, cli.Usagef(format, a...)
	}
	kind, err := backendNamed(m.Backend)
	if err != nil {
		return load{}, kind, err
	}
	total, _ := machineMemory()
	l := load{
		Sizes: sizes(m.Sizes), Cycles: m.Cycles, Goroutines: runtime.GOMAXPROCS(0), Seed: m.Seed, Settle: m.Settle,
	}
	if m.High != nil {
		l.High = int64(*m.High)
	} else {
		if total == 0 {
			return fail("--high: this system does not say how much memory there is; give a size, such as --high 4GiB")
		}
		l.High = total / 2
	}
	l.Low = l.High / 16
	if m.Low != nil {
		l.Low = int64(*m.Low)
	}
	if m.Goroutines != nil {
		l.Goroutines = *m.Goroutines
	}
	mostTable := int64(math.MaxInt / 4)
	if total > 0 {
		mostTable = min(mostTable, total)
	}

	switch {
	case l.Cycles < 1:
		return fail("--cycles %d: at least one is needed", l.Cycles)
	case l.Goroutines < 1:
		return fail("--goroutines %d: at least one is needed", l.Goroutines)
	case l.Settle < 0:
		return fail("--settle %v: a time cannot be negative", l.Settle)
	case l.High/int64(l.Goroutines) < l.Sizes.max():
		return fail("--high %s is too little: each of the %d goroutines needs room for a chunk of up to %s",
			cli.Bytes(l.High), l.Goroutines, cli.Bytes(l.Sizes.max()))
	case l.Low >= l.High:
		return fail("--low %s is not below --high %s: there would be nothing to free", cli.Bytes(l.Low), cli.Bytes(l.High))
	case m.Limit != nil && *m.Limit == 0:
		return fail("--limit 0: at least a byte is needed; without --limit there is none")
	case total > 0 && l.High > total && !m.Force:
		return fail("--high %s is more than this machine's %s of memory: the system would swap, or kill this process; choose less, or add --force",
			cli.Bytes(l.High), cli.Bytes(total))
	case l.tableBytes() > float64(mostTable):
		return fail("--high %s: the table of that many chunks would take more than %s", cli.Bytes(l.High), cli.Bytes(mostTable))
	}
	return l, kind, nil
}

func (m *memtestCommand) Run(ctx context.Context, st cli.Streams) error {
	l, kind, err := m.plan()
	if err != nil {
		return err
	}
	if err := kind.become(); err != nil {
		return err
	}
	limit := int64(0)
	if m.Limit != nil {
		limit = int64(*m.Limit)
	}
	b, err := kind.open(limit)
	if err != nil {
		return err
	}
	defer b.close()
	files, text, err := openOuts(map[string]filePath{"--csv": m.CSV, "--png": m.PNG, "--html": m.HTML}, st)
	if err != nil {
		return err
	}

	r := &memtestReport{load: l, kind: kind, limit: limit, seconds: time.Now()}
	r.printHead(text)
	if _, available := machineMemory(); available > 0 && l.High > available/10*9 {
		fmt.Fprintf(st.Err, "lab: warning: only %s of memory is available now; the system may kill this process\n", cli.Bytes(available))
	}

	bar := cli.NewBar(st.Err, 100*time.Millisecond)
	s := newSawtooth(l, b)
	s.progress = bar.Show
	s.afterCycle = func() {
		// So that a process that is killed leaves the cycles it had finished. An
		// error shows again when the run ends.
		r.outcome = &s.out
		_ = files["--csv"].write(r.csv())
	}
	r.outcome, r.failure = s.run(ctx)
	bar.Clear()

	r.printResult(text)
	err = r.failure
	if errors.Is(err, freehold.ErrOutOfMemory) {
		err = fmt.Errorf("stopped, out of memory: %w", err)
	}
	return errors.Join(err, r.write(files), files.close())
}
