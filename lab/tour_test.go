package main

import (
	"context"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

var tinyTour = []string{"--nodes", "2000", "--high", "8MiB", "--cycles", "2", "--settle", "1ms", "--live", "1MiB", "--load", "20ms"}

func TestDemo(t *testing.T) {
	page := filepath.Join(t.TempDir(), "demo.html")
	code, out, errs := command(t.Context(), append([]string{"report", "--html", page}, tinyTour...)...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if first, _, _ := strings.Cut(out, "\n"); !strings.HasPrefix(first, "lab report: starting 14 measurements") {
		t.Errorf("the first line is %q", first)
	}
	wants := []string{"In short", page}
	for _, s := range tour {
		wants = append(wants, s.title())
	}
	for _, want := range append(wants, "2,000 nodes of", "off-heap, list", "worst turn, ms", "all freed, after Trim") {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
	checkPlain(t, out+errs)
	checkHTML(t, page, "A linked list", "Memory that comes back", "Go heap", "How this was measured")
}

func TestDemoTellsOneStory(t *testing.T) {
	for _, s := range stories {
		code, out, errs := command(t.Context(), append([]string{"report", s.name()}, tinyTour...)...)
		if code != 0 {
			t.Fatalf("%s: exit code %d: %s", s.name(), code, errs)
		}
		for _, other := range stories {
			if told := strings.Contains(out, other.title()); told != (other == s) {
				t.Errorf("demo %s: %q told: %v", s.name(), other.title(), told)
			}
		}
	}
}

// A placeholder hides the default, so the text has to say it.
func TestDemoHelpTellsDefaults(t *testing.T) {
	fields := reflect.TypeFor[tourCommand]()
	for i := range fields.NumField() {
		tag := fields.Field(i).Tag
		if tag.Get("default") != "" && tag.Get("placeholder") != "" && !strings.Contains(tag.Get("help"), "Default: ") {
			t.Errorf("the help of %s is silent on its default", fields.Field(i).Name)
		}
	}
	_, help, _ := command(t.Context(), "report", "--help")
	help = strings.Join(strings.Fields(help), " ")
	for _, want := range []string{"Memory limits of the story budget. Default: 512MiB.", "percent of the limit. Default: 50,80."} {
		if !strings.Contains(help, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

func TestStories(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range stories {
		if s.name() == "" || s.title() == "" || s.why() == "" || seen[s.name()] {
			t.Errorf("story %q, %q, %q: something is missing or there twice", s.name(), s.title(), s.why())
		}
		all, usual := s.backends()
		if got := (settings{}).backendsOf(s); len(usual) == 0 || !slices.Equal(got, usual) {
			t.Errorf("story %q is told of %v, want %v", s.name(), got, usual)
		}
		if got := (settings{Backends: []string{"nothing", all[0]}}).backendsOf(s); !slices.Equal(got, all[:1]) {
			t.Errorf("story %q with %q alone is told of %v", s.name(), all[0], got)
		}
		seen[s.name()] = true
	}
}

func TestListLeavesTheGoHeapAlone(t *testing.T) {
	const nodes = 50_000
	set := settings{Nodes: nodes}
	var off, onGo listFigures
	none := func(float64) {}
	if err := runChild(t.Context(), listStory{}, set, "freehold", none, &off); err != nil {
		t.Fatal(err)
	}
	if err := runChild(t.Context(), listStory{}, set, "go", none, &onGo); err != nil {
		t.Fatal(err)
	}
	if off.OffLive < nodes*nodeBytes || off.OffLeft != 0 {
		t.Errorf("off-heap %d bytes with the list and %d without, want at least %d and 0", off.OffLive, off.OffLeft, nodes*nodeBytes)
	}
	if onGo.HeapLive < nodes*nodeBytes {
		t.Errorf("the Go list leaves the Go heap at %d bytes", onGo.HeapLive)
	}
	if !raceBuild && off.HeapLive >= 1<<20 {
		t.Errorf("the off-heap list leaves the Go heap at %d bytes, want less than 1 MiB", off.HeapLive)
	}
}

// What cannot be had here is a note, and not the end of the demo.
func TestDemoOfEveryBackend(t *testing.T) {
	names := strings.Join(contenderNames(), ",")
	code, out, errs := command(t.Context(), append([]string{"report", "--backend", names}, tinyTour...)...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	for _, name := range contenderNames() {
		had, skipped := strings.Contains(out, titleOf(name)), strings.Contains(out, "skipped: "+name+": ")
		if !had && !skipped {
			t.Errorf("%s is neither measured nor skipped:\n%s", name, out)
		}
		if name == "go" || name == "freehold" {
			if skipped {
				t.Errorf("%s was skipped", name)
			}
		}
	}
	checkPlain(t, out+errs)
}

func TestDemoOfOneBackend(t *testing.T) {
	code, out, errs := command(t.Context(), append([]string{"report", "--backend", "freehold"}, tinyTour...)...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if strings.Contains(out, "libc") || strings.Contains(out, "ms (Go heap)") || !strings.Contains(out, "ms (freehold);") {
		t.Errorf("the demo of freehold alone says:\n%s", out)
	}
}

// The sentence about a list has the figures of each contender, not the worst of some.
func TestListResult(t *testing.T) {
	got := listResult(2_000_000, []contender{goContender, freeholdContender, libcContender},
		[]listFigures{{Collect: 98, HeapLive: 64 << 20}, {Collect: 3.98, HeapLive: 1 << 20}, {Collect: 12, HeapLive: 2 << 20}})
	want := "With 2,000,000 nodes live, one collection takes 98.0 ms (Go heap), 3.98 ms (freehold) and 12.0 ms (" + libcContender.title +
		"); the Go heap then holds 64.0 MiB, 1.00 MiB and 2.00 MiB."
	if got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestDemoInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, errs := command(ctx, append([]string{"report"}, tinyTour...)...); code != cli.Interrupted {
		t.Errorf("exit code %d, %q", code, errs)
	}
}

func TestChildFailureIsTold(t *testing.T) {
	err := runChild(t.Context(), sawtoothStory{}, settings{High: 8 << 20, Cycles: 1}, "nothing", func(float64) {}, new(outcome))
	if err == nil || !strings.Contains(err.Error(), `no backend is called "nothing"`) {
		t.Errorf("the error is %v", err)
	}
	if code, _, _ := command(t.Context(), "child", "nothing", "go", "{}"); code != cli.Misused {
		t.Errorf("an unknown story gave exit code %d", code)
	}
	if code, _, _ := command(t.Context(), "child", "list", "go", "{"); code != cli.Misused {
		t.Errorf("settings that are no JSON gave exit code %d", code)
	}
}
