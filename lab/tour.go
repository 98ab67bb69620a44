package main

import (
	"context"
	"errors"
	"fmt"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"slices"
	"strings"
	"time"
)

// tourCommand tells the stories.
type tourCommand struct {
	Stories []string `arg:"" optional:"" name:"story" help:"Stories to tell: ${stories}. Default: all but budget, one after the other."`

	Nodes int       `default:"2000000" help:"Nodes of the linked list."`
	Live  cli.Size  `default:"256MiB" help:"What the collector's live data takes on the Go heap."`
	High  *cli.Size `placeholder:"SIZE" help:"Live bytes at the top of the sawtooth. Default: 1GiB, or less on a small machine."`

	Limits []cli.Size `default:"512MiB" placeholder:"SIZE" help:"Memory limits of the story budget. Default: ${default}."`
	Shares []int      `default:"50,80" placeholder:"N" help:"Shares of off-heap memory in them, in percent of the limit. Default: ${default}."`
	Runs   int        `default:"1" help:"How often each of its loads runs."`
	With   nameList   `placeholder:"NAME,..." help:"How they keep to the limit: default (Go's defaults), limit (GOMEMLIMIT), budget. Default: all."`
	Box    string     `default:"cgroup" enum:"cgroup,none" help:"What limits them: a control group of Linux (cgroup), or nothing (none: peaks are measured, nothing is killed)."`
	GoLive *cli.Size  `placeholder:"SIZE" help:"Their live Go heap. Default: a quarter of what the off-heap share leaves, 64MiB at most."`

	// What the stories are told of.
	Backend nameList `placeholder:"NAME,..." help:"Allocators to compare, of: ${contenders}. Default: all of them in the list, go and freehold in the sawtooth."`

	CSV  filePath `name:"csv" placeholder:"FILE" help:"Write the runs of the story budget, a row each; - is standard output."`
	PNG  filePath `name:"png" placeholder:"FILE" help:"Write the charts of all stories told."`
	HTML filePath `name:"html" placeholder:"FILE" help:"Write a report with charts as one page that needs no network; - is standard output."`

	Cycles int           `hidden:"" default:"3"`
	Settle time.Duration `hidden:"" default:"1500ms"`
	Load   time.Duration `hidden:"" default:"1s"` // of the collector

	Rounds   int           `hidden:"" default:"3"`     // of a load in a box
	Hold     time.Duration `hidden:"" default:"300ms"` // within a round
	Deadline time.Duration `hidden:"" default:"2m"`    // of a run
}

// A nameList is names on the command line, with commas between them.
type nameList []string

func (n *nameList) UnmarshalText(text []byte) error {
	for name := range strings.SplitSeq(string(text), ",") {
		if name == "" {
			return errors.New("a name is missing")
		}
		*n = append(*n, name)
	}
	return nil
}

// plan turns the flags into stories and their settings, or says what is wrong.
func (d *tourCommand) plan() ([]story, settings, error) {
	chosen := tour
	if len(d.Stories) > 0 {
		chosen = nil
		for _, name := range d.Stories {
			s, err := storyNamed(name)
			if err != nil {
				return nil, settings{}, err
			}
			chosen = append(chosen, s)
		}
	}
	set := settings{
		Nodes: d.Nodes, Cycles: d.Cycles, Settle: d.Settle, Backends: d.Backend,
	}
	known := contenderNames()
	for _, name := range d.Backend {
		if !slices.Contains(known, name) {
			return nil, set, cli.Usagef("--backend: nothing is called %q; there are: %s", name, strings.Join(known, ", "))
		}
	}
	chosen = slices.DeleteFunc(slices.Clone(chosen), func(s story) bool { return len(set.backendsOf(s)) == 0 })
	if len(chosen) == 0 {
		return nil, set, cli.Usagef("--backend %s: none of the chosen stories supports it", strings.Join(d.Backend, ","))
	}
	total, _ := machineMemory()
	switch {
	case d.High != nil:
		set.High = int64(*d.High)
	case total > 0:
		set.High = min(1<<30, total/8)
	default:
		set.High = 1 << 30
	}
	switch {
	case set.Cycles < 1:
		return nil, set, cli.Usagef("--cycles %d: at least one is needed", set.Cycles)
	case set.Settle < 0:
		return nil, set, cli.Usagef("--settle %v: a time cannot be negative", set.Settle)
	case set.Nodes < 1:
		return nil, set, cli.Usagef("--nodes %d: at least one is needed", set.Nodes)
	case total > 0 && int64(set.Nodes) > total/2/nodeBytes:
		return nil, set, cli.Usagef("--nodes %d: at %d bytes each they would take more than half of the %s of memory", set.Nodes, nodeBytes, cli.Bytes(total))
	case total > 0 && set.High > total/3:
		return nil, set, cli.Usagef("--high %s is more than a third of the %s of memory, and the Go heap needs twice that; memtest goes higher", cli.Bytes(set.High), cli.Bytes(total))
	}
	if _, _, err := sawtoothLoad(set); err != nil {
		return nil, set, err
	}
	if slices.Contains(chosen, story(gcStory{})) {
		set.Lab = newLabLoad(int64(d.Live), d.Load)
		if err := (gcStory{}).check(set); err != nil {
			return nil, set, err
		}
	}
	if slices.Contains(chosen, story(budgetStory{})) {
		box, err := d.box()
		if err != nil {
			return nil, set, err
		}
		set.Box = box
	} else if d.CSV != "" {
		return nil, set, cli.Usagef("--csv is for the story budget, which is not told")
	}
	return chosen, set, nil
}

// box turns the flags of the story budget into settings.
func (d *tourCommand) box() (boxSettings, error) {
	s := boxSettings{
		Kind: d.Box, Shares: d.Shares, Runs: d.Runs, Rounds: d.Rounds, Hold: d.Hold, Deadline: d.Deadline,
	}
	for _, limit := range d.Limits {
		s.Limits = append(s.Limits, int64(limit))
	}
	if d.GoLive != nil {
		s.Live = int64(*d.GoLive)
	}
	short := map[string]string{"default": boxDefault, "limit": boxLimit, "budget": boxBudget}
	for _, name := range d.With {
		if short[name] == "" {
			return s, cli.Usagef("--with: nothing is called %q; there are: default, limit, budget", name)
		}
		s.Modes = append(s.Modes, short[name])
	}
	if len(s.Modes) == 0 {
		s.Modes = boxModes
	}
	return s, budgetStory{}.check(s)
}

func (d *tourCommand) Run(ctx context.Context, st cli.Streams) error {
	chosen, set, err := d.plan()
	if err != nil {
		return err
	}
	files, text, err := openOuts(map[string]filePath{"--csv": d.CSV, "--png": d.PNG, "--html": d.HTML}, st)
	if err != nil {
		return err
	}
	steps, step := 0, 0
	for _, s := range chosen {
		steps += s.measurements(set)
	}
	began := time.Now()
	bar := cli.NewBar(st.Err, 100*time.Millisecond)
	defer bar.Clear()
	each := "each "
	if steps == 1 {
		each = ""
	}
	bar.Println(text, cli.Strong(text, fmt.Sprintf("lab report: starting %s, %sin a process of its own", cli.Plural(steps, "measurement"), each)))
	bar.Println(text, wrapped(text, "", machineText()))

	report := &page{
		Title: "freehold: memory you own",
		Lead:  "Off-heap memory for Go, next to the Go heap, on this machine.",
		Facts: []string{machineText(), version(), began.Format("2006-01-02 15:04"), "Each measurement ran in a process of its own."},
	}
	var failure error
	for _, s := range chosen {
		run := func(ctx context.Context, s story, backend string, result any) error {
			what := s.title() + " (" + titleOf(backend) + ")"
			bar.Show(float64(step)/float64(steps), what)
			err := runChild(ctx, s, set, backend, func(f float64) {
				bar.Show((float64(step)+f)/float64(steps), what)
			}, result)
			step++
			return err
		}
		sec, err := s.tell(ctx, set, run)
		if err != nil {
			failure = err
			break
		}
		sec.Title, sec.Why = s.title(), s.why()
		report.Sections = append(report.Sections, sec)
		if sec.CSV != nil {
			failure = errors.Join(failure, files["--csv"].write(sec.CSV))
		}

		bar.Println(text, "\n"+cli.Strong(text, sec.Title)+"\n"+wrapped(text, "", sec.Why)+"\n")
		for _, g := range sec.Grids {
			g.print(text)
		}
		for _, n := range sec.Notes {
			fmt.Fprintln(text, wrapped(text, "  - ", n))
		}
	}
	bar.Clear()
	if len(report.Sections) > 0 {
		fmt.Fprintf(text, "\n%s (%s)\n", cli.Strong(text, "In short"), duration(since(began)))
		for _, sec := range report.Sections {
			fmt.Fprintln(text, wrapped(text, "- ", sec.Result))
		}
		if f := files["--html"]; f != nil {
			data, err := report.html()
			if err == nil {
				err = f.write(data)
			}
			if err == nil {
				fmt.Fprintln(text, "\nReport: "+f.path)
			}
			failure = errors.Join(failure, err)
		}
		failure = errors.Join(failure, files.render("--png", func() ([]byte, error) {
			var charts []chart
			for _, sec := range report.Sections {
				charts = append(charts, sec.Charts...)
			}
			return pngOf(charts)
		}))
	}
	return errors.Join(failure, files.close())
}
