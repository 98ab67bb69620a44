package main

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/panics"
	"github.com/freehold-go/freehold/profile"
	"github.com/freehold-go/freehold/track"
	"github.com/freehold-go/freehold/track/web"
)

const guide = "../../docs/debugging.md"

// panicOf returns f's panic as a program prints it.
func panicOf(f func()) string { return "panic: " + panics.Of(f) + "\n" }

//go:noinline
func loadIndex(a freehold.Allocator) (blocks [][]byte) {
	for range 1000 {
		blocks = append(blocks, freehold.Must(a.Alloc(20_000, 8)))
	}
	return blocks
}

//go:noinline
func fillCache(h *freehold.Heap) [][]byte { return [][]byte{freehold.Must(h.Alloc(5<<20, 8))} }

// outputs makes each output of the guide.
var outputs = map[string]func(t *testing.T) string{
	"stats": func(t *testing.T) string {
		s := web.Take()
		s.Program, s.SampleRate, s.Stacks = "debugging", 0, nil
		s.Tags = slices.DeleteFunc(s.Tags, func(tag freehold.TagStats) bool { return tag.Tag != "nodes" })
		var mine []freehold.Stats
		for _, name := range []string{"cache", "index"} {
			st, _ := s.Heap(name)
			mine = append(mine, st)
		}
		s.Heaps = mine
		return "$ freehold stats localhost:6060\n" + s.Text(nil, 0)
	},
	"pprof": func(t *testing.T) string {
		file := filepath.Join(t.TempDir(), "offheap.pb.gz")
		f, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(profile.Write(f), f.Close()); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("go", "tool", "pprof", "-top", "-nodecount=4", "-tagfocus=heap=cache|index", file)
		cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir(), "PPROF_BINARY_PATH="+t.TempDir())
		var out strings.Builder
		cmd.Stdout = &out
		if err := cmd.Run(); err != nil {
			t.Skip(err)
		}
		_, table, found := strings.Cut(out.String(), "      flat  flat%")
		if !found {
			t.Fatalf("go tool pprof printed %s", out.String())
		}
		return "$ go tool pprof -top http://localhost:6060/debug/pprof/offheap\n      flat  flat%" + table
	},
	"limit": func(t *testing.T) string {
		h := freehold.NewHeap(&freehold.HeapOptions{Name: "sessions", MaxBytes: 1 << 20})
		defer h.Close()
		_, err := h.Alloc(2<<20, 8)
		if !errors.Is(err, freehold.ErrOutOfMemory) {
			t.Errorf("error %v", err)
		}
		return err.Error() + "\n"
	},
	"free": func(t *testing.T) string {
		h := freehold.NewHeap(&freehold.HeapOptions{Name: "index"})
		defer h.Close()
		b := freehold.Must(h.Alloc(100, 8))
		other := freehold.NewHeap(&freehold.HeapOptions{Name: "other"})
		defer other.Close()
		text := panicOf(func() { h.Free(b[10:]) }) + panicOf(func() { h.Free(b[:10]) }) + panicOf(func() { other.Free(b) }) + panicOf(func() { h.Free(make([]byte, 10)) })
		h.Free(b)
		return text + panicOf(func() { h.Free(b) })
	},
	"pointer": func(t *testing.T) string {
		type row struct {
			id   int
			tags struct{ name string }
		}
		return panicOf(func() { _, _ = freehold.New[row](freehold.Default()) })
	},
}

// shape removes the numbers of a text, except numbers of lines, units and widths, and the order
// of two racing accesses.
func shape(text string) string {
	text = regexp.MustCompile(`(main|_test)\.go:[0-9]+`).ReplaceAllStringFunc(text, strings.NewReplacer(
		"0", "a", "1", "b", "2", "c", "3", "d", "4", "e", "5", "f", "6", "g", "7", "h", "8", "i", "9", "j").Replace)
	text = regexp.MustCompile(`(?m)^(Previous |)(read|write|Read|Write) at `).ReplaceAllString(text, "${1}ACCESS at ")
	text = regexp.MustCompile(`0x[0-9a-f]+`).ReplaceAllString(text, "ADDRESS")
	text = regexp.MustCompile(`[0-9][0-9hm.]*s\b|[0-9][0-9,.]*( ?([KMGT]i?)?B|kB)?%?`).ReplaceAllString(text, "N")
	text = regexp.MustCompile(`N[-:N hms]*N`).ReplaceAllString(text, "N")
	return regexp.MustCompile(`[ \t]+`).ReplaceAllString(strings.ReplaceAll(text, "\r\n", "\n"), " ")
}

// The guide quotes the output of the tools, numbers aside.
func TestTheGuideIsUpToDate(t *testing.T) {
	defer track.SetSampleRate(track.SetSampleRate(1))
	cache := freehold.NewHeap(&freehold.HeapOptions{Name: "cache", MaxBytes: 8 << 20})
	defer cache.Close()
	index := freehold.NewHeap(&freehold.HeapOptions{Name: "index"})
	defer index.Close()
	fillCache(cache)
	loadIndex(freehold.NewTagged(index, "nodes"))
	all := workshop{t.TempDir(), map[string]string{}}.outputs()
	maps.Copy(all, outputs)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(guide)
			if err != nil {
				t.Skip(err) // the sources are not available
			}
			begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
			head, rest, ok := strings.Cut(string(text), begin)
			got, tail, ok2 := strings.Cut(rest, end)
			if !ok || !ok2 {
				t.Fatalf("%s has no %s", guide, name)
			}
			want := "```\n" + all[name](t) + "```\n"
			switch {
			case shape(got) == shape(want):
			case *update:
				if err := os.WriteFile(guide, []byte(head+begin+want+end+tail), 0o666); err != nil {
					t.Fatal(err)
				}
			default:
				t.Errorf("%s has\n%sbut the tool prints\n%sgo test -update writes it", guide, got, want)
			}
		})
	}
}
