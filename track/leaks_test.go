package track_test

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
	"github.com/freehold-go/freehold/buffer"
	"github.com/freehold-go/freehold/cache"
	"github.com/freehold-go/freehold/internal/asan"
	"github.com/freehold-go/freehold/internal/owners"
	"github.com/freehold-go/freehold/internal/test/child"
	"github.com/freehold-go/freehold/internal/watch"
	"github.com/freehold-go/freehold/pool"
	"github.com/freehold-go/freehold/track"
)

// leaksOf returns the leaks in one heap as lines of text, with the innermost function.
func leaksOf(heap string) (all []string) {
	for _, l := range track.Leaks() {
		if l.Heap == heap {
			all = append(all, fmt.Sprintf("%s%d blocks, %d bytes by %s", l.Tag, l.Blocks, l.Bytes, functionOf(l.Stack)))
		}
	}
	return all
}

// functionOf returns the innermost function of a stack, without its package.
func functionOf(stack []uintptr) string {
	f, _ := runtime.CallersFrames(stack).Next()
	return f.Function[strings.LastIndexByte(f.Function, '.')+1:]
}

// Leaks returns exactly the live blocks, one entry for each stack, the most bytes first.
func TestLeaks(t *testing.T) {
	sampleAt(t, 1)
	h := freehold.NewHeap(&freehold.HeapOptions{Name: t.Name()})
	tagged := freehold.NewTagged(h, "tag: ")
	var blocks [][]byte
	for range 300 { // fast paths and slow ones
		blocks = append(blocks, direct(h))
		typed(h)
	}
	for _, b := range blocks[:299] {
		h.Free(b)
	}
	large := direct(tagged)
	want := []string{"300 blocks, 76800 bytes by typed", "1 blocks, 100 bytes by direct", "tag: 1 blocks, 100 bytes by direct"}
	got := leaksOf(t.Name())
	slices.SortStableFunc(got, func(a, b string) int { return strings.Index(a, " 100 bytes") - strings.Index(b, " 100 bytes") })
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	tagged.Free(large)
	if got := leaksOf(t.Name()); len(got) != 2 {
		t.Errorf("%q", got)
	}
	h.Close()
	if got := leaksOf(t.Name()); len(got) != 0 {
		t.Errorf("a closed heap has leaks: %q", got)
	}
}

// WriteLeaks lists blocks that were live at Close of their heap in a part of their own.
func TestWriteLeaksOfClosedHeaps(t *testing.T) {
	sampleAt(t, 1)
	report := func() string {
		var b strings.Builder
		if err := track.WriteLeaks(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	name := newName(t)
	h := freehold.NewHeap(&freehold.HeapOptions{Name: name})
	h.Free(direct(h))
	for _, a := range []freehold.Allocator{h, freehold.NewLimit(h, 1000), freehold.NewTagged(h, "db")} {
		direct(a)
	}
	typed(h)
	if _, got, _ := strings.Cut(report(), " live at Close of their heap"); strings.Contains(got, name) {
		t.Errorf("before Close: %s", got)
	}
	h.Close()
	_, got, found := strings.Cut(report(), " live at Close of their heap, by ")
	before := 0 // the most bytes come first
	for _, want := range []string{
		"1 block, 256 bytes of heap %q, allocated at:\n",
		"2 blocks, 200 bytes of heap %q, allocated at:\n",
		"1 block, 100 bytes of heap %q, tag \"db\", allocated at:\n",
	} {
		at := strings.Index(got, fmt.Sprintf(want, name))
		if !found || at < before {
			t.Errorf("no %s in %s", want, got[before:])
		}
		before = max(at, before)
	}
}

func TestWriteLeaks(t *testing.T) {
	sampleAt(t, 1)
	h := freehold.NewHeap(&freehold.HeapOptions{Name: t.Name()})
	defer h.Close()
	direct(freehold.NewTagged(h, "db"))
	typed(h)
	typed(h)
	a := arena.New(h, nil)
	defer a.Close()
	direct(a)
	var b strings.Builder
	if err := track.WriteLeaks(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`^freehold: \d+ blocks, \d+ bytes live, by \d+ stacks\n\n`,
		`\n\n1 block, 100 bytes of heap "TestWriteLeaks", tag "db", allocated at:\ngithub.com/freehold-go/freehold/track_test.direct\n\t.*/track_test.go:\d+\ngithub.com/freehold-go/freehold/track_test.TestWriteLeaks\n\t.*/leaks_test.go:\d+\n`,
		`\nbytes? of heap "TestWriteLeaks", allocated at:\n.*track_test.typed\n`,
		`bytes of heap "TestWriteLeaks", memory of arena\.Arena, allocated through arena\.\(\*Arena\)\.Alloc at:\n.*track_test\.direct\n`,
	} {
		want = strings.Replace(want, `\nbytes?`, `\n1 block, 256 bytes`, 1)
		if !regexp.MustCompile(want).MatchString(b.String()) {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
	for rate, want := range map[int]string{
		0:    `^freehold: \d+ blocks, \d+ bytes live, by \d+ stacks\n`,
		2:    `^freehold: about .* stacks, estimated from one in 2 bytes\n`,
		1000: `^freehold: about .* stacks, estimated from one in 1000 bytes\n`,
	} {
		track.SetSampleRate(rate)
		b.Reset()
		if err := track.WriteLeaks(&b); err != nil || !regexp.MustCompile(want).MatchString(b.String()) {
			t.Errorf("rate %d: %v, %s", rate, err, b.String())
		}
	}
	for n := range 2 {
		if err := track.WriteLeaks(full(n)); err != io.ErrShortWrite {
			t.Errorf("%v", err)
		}
		if err := track.WriteStats(full(n)); err != io.ErrShortWrite {
			t.Errorf("%v", err)
		}
	}
}

// full is a writer that always fails.
type full int

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestWriteStats(t *testing.T) {
	name := newName(t)
	h := freehold.NewHeap(&freehold.HeapOptions{Name: name, MaxBytes: 4 << 20})
	defer h.Close()
	tagged := freehold.NewTagged(h, name+" tag")
	tagged.Free(direct(tagged))
	direct(tagged)
	h.Alloc(8<<20, 8)
	c := cache.New(freehold.Default(), &cache.Options{Name: name + " cache", MaxBytes: cache.MinBytes})
	defer c.Close()
	for i := range 1000 {
		freehold.Must(0, c.Set(fmt.Append(nil, i), make([]byte, 1000)))
		c.Get(nil, fmt.Append(nil, min(i%4, 1)*1000+i))
	}
	st := c.Stats()
	refusals := uint64(0)
	for _, st := range freehold.AllStats() {
		refusals += st.Refusals
	}
	var b strings.Builder
	if err := track.WriteStats(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`^ +live +blocks +resident +committed +refused calls  heap\n`,
		`\n +(112|144) +1 +\d+ +\d+ +1  "` + name + `"\n`,
		`\n +\d+ +\d+ +\d+ +\d+ +` + fmt.Sprint(refusals) + `  total\n +live +blocks +peak +allocations +frees  tag\n`,
		`\n +\d+ +1 +100 +2 +1  "` + name + ` tag"\n`,
		fmt.Sprintf(`\n +live +entries +hits +misses +evicted  cache\n +%d +%d +250 +750 +%d  "%s cache"\n`, st.Live, st.Len, st.Evicted, name),
	} {
		if !regexp.MustCompile(want).MatchString(b.String()) {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
}

// WriteStats has a row for the guards of each heap that has had any.
func TestWriteStatsOfGuards(t *testing.T) {
	if !watch.CanGuard {
		t.Skip("no guards in this build")
	}
	names := []string{newName(t), newName(t), newName(t)}
	for i, name := range names {
		was := track.SetGuardRate(min(i, 1), 0)
		defer track.SetGuardRate(was, 0)
		h := freehold.NewHeap(&freehold.HeapOptions{Name: name})
		defer h.Close()
		freehold.Must(h.Alloc(2<<20, 8)) // too large
		if i < 2 {
			direct(h)
			h.Free(direct(h))
		}
	}
	var b strings.Builder
	if err := track.WriteStats(&b); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(b.String(), "\n   live guards       ever        skipped  heap\n")
	const row = "%14d %10d %14d  %q\n"
	if want := fmt.Sprintf(row+row, 1, 2, 1, names[1], 0, 0, 1, names[2]); !strings.Contains(got, want) || strings.Contains(got, names[0]) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Each type that owns memory is reported when it is dropped, with its name and the stack that
// made it. A closed one is not reported.
func TestDroppedOwners(t *testing.T) {
	var out strings.Builder
	defer owners.WatchTo(&out)()
	h := freehold.NewHeap(nil)
	defer h.Close()
	type closer struct {
		freehold.Allocator
		close func()
	}
	made := map[string]func() closer{
		`freehold.Heap "dropped"`: func() closer {
			h := freehold.NewHeap(&freehold.HeapOptions{Name: "dropped", Decay: -1})
			return closer{h, h.Close}
		},
		`arena.Arena "dropped"`: func() closer {
			a := arena.New(h, &arena.Options{Name: "dropped"})
			return closer{a, a.Close}
		},
		`arena.Shared "dropped"`: func() closer {
			a := arena.NewShared(h, &arena.SharedOptions{Name: "dropped"})
			return closer{a, a.Close}
		},
		`pool.Blocks "dropped"`: func() closer {
			p := pool.NewBlocks(h, 100, 8, &pool.Options{Name: "dropped"})
			return closer{p, p.Close}
		},
		`pool.Pool "dropped"`: func() closer {
			p := pool.New[int64](h, &pool.Options{Name: "dropped"})
			p.Get()
			return closer{freehold.Default(), p.Close}
		},
		`buffer.Buffer`: func() closer {
			b := buffer.New(h, nil)
			b.Write(make([]byte, 1000))
			return closer{freehold.Default(), func() { b.Close() }}
		},
	}
	apart := func(f func()) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			f()
		}()
		<-done
	}
	for name, f := range made {
		apart(func() {
			o := f()
			b := direct(o)
			o.Free(b)
			o.close()
		})
		owners.Collect()
		if got := track.DroppedOwners(); len(got) != 0 {
			t.Errorf("%s: closed, and found %+v", name, got)
		}
	}
	for _, f := range made {
		for range 2 {
			apart(func() {
				o := f()
				direct(o)
			})
		}
	}
	owners.Collect()
	counts := map[string]int{}
	for _, d := range track.DroppedOwners() {
		name := d.Kind
		if d.Name != "" {
			name += fmt.Sprintf(" %q", d.Name)
		}
		counts[name] += d.Count
		if f, _ := runtime.CallersFrames(d.Stack).Next(); !strings.Contains(f.Function, "track_test.TestDroppedOwners") {
			t.Errorf("%s: made by %s", name, f.Function)
		}
		if !strings.Contains(out.String(), "freehold: "+name+" was dropped without Close, made at:\ngithub.com/freehold-go/freehold/track_test.TestDroppedOwners") {
			t.Errorf("no %s in the reports\n%s", name, out.String())
		}
	}
	for name := range made {
		if counts[name] != 2 {
			t.Errorf("%d times %s, want 2", counts[name], name)
		}
	}
	var b strings.Builder
	if err := track.WriteLeaks(&b); err != nil || strings.Count(b.String(), " dropped without Close") != len(track.DroppedOwners()) {
		t.Errorf("%v\n%s", err, b.String())
	}
	if n := strings.Count(b.String(), " dropped without Close 2 times (its blocks, if any, are listed above), made at:"); n != len(made) {
		t.Errorf("%d owners were dropped 2 times, want %d\n%s", n, len(made), b.String())
	}
}

// AtExit reports writes after Free that no call has found.
func TestLateWriteAtExit(t *testing.T) {
	if child.Is(t) {
		h := freehold.NewHeap(&freehold.HeapOptions{Name: "index"})
		b := direct(h)
		h.Free(b)
		b[50] = 1
		track.AtExit()
		runtime.KeepAlive(h)
		return
	}
	if asan.Enabled {
		t.Skip("the sanitizer reports the write")
	}
	for mode, want := range map[string]bool{"": false, "poison": true, "quarantine=10000": true} {
		_, got, err := child.Run(t, "FREEHOLD_DEBUG="+mode)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`^freehold: heap "index": byte 50 of the block of 100 bytes at 0x\w+ was written after its Free\n\tallocated at:\n\t\t.*track_test\.direct\n(.*\n)*\tfreed at:\n`).MatchString(got)
		if found != want || !want && got != "" {
			t.Errorf("FREEHOLD_DEBUG=%s: %s", mode, got)
		}
	}
}

// A program that was started with FREEHOLD_DEBUG reports its leaks at its end. A program without
// it prints nothing.
func TestAtExit(t *testing.T) {
	if child.Is(t) {
		h := freehold.NewHeap(&freehold.HeapOptions{Name: "index"})
		direct(freehold.NewTagged(h, "db"))
		h.Free(direct(h))
		done := make(chan struct{})
		go func() {
			defer close(done)
			direct(arena.New(h, &arena.Options{Name: "request"}))
		}()
		<-done
		track.AtExit()
		runtime.KeepAlive(h)
		return
	}
	const leaks = `freehold: 2 blocks, ` // the byte count follows: a red zone makes an arena's chunk larger
	const stats = `refused calls  heap`
	const dropped = `arena.Arena "request" dropped without Close (its blocks, if any, are listed above), made at:`
	const open = `freehold.Heap "index" not closed, made at:`
	for mode, want := range map[string]struct{ has, hasNot []string }{
		"":        {nil, []string{"freehold", stats}},
		"profile": {nil, []string{"freehold", stats}},
		"stats":   {[]string{stats, `"index"`, `"db"`}, []string{"freehold:"}},
		"leak": {[]string{leaks, `1 block, 100 bytes of heap "index", tag "db", allocated at:`, "track_test.direct\n", dropped,
			"memory of arena.Arena, allocated through arena.(*Arena).Alloc at:", open, "track_test.TestAtExit"}, []string{stats, `"default"`}},
		"stats,leak": {[]string{leaks, dropped, stats}, nil},
		// Red zones and freed blocks in quarantine are not leaks.
		"leak,poison":           {[]string{leaks, `100 bytes of heap "index", tag "db"`}, nil},
		"leak,quarantine=10000": {[]string{leaks, `100 bytes of heap "index", tag "db"`}, nil},
		"leak,guard":            {[]string{leaks, `100 bytes of heap "index", tag "db"`}, nil},
		"leak,guard,poison":     {[]string{leaks, `100 bytes of heap "index", tag "db"`}, nil},
		"poison=2":              {[]string{"freehold: FREEHOLD_DEBUG: poison=2, want no value; the mode is off"}, nil},
		"leak,profile=10000":    {[]string{dropped, open}, []string{leaks, stats}},
	} {
		_, errs, err := child.Run(t, "FREEHOLD_DEBUG="+mode)
		if err != nil {
			t.Errorf("%s: %v", mode, err)
		}
		for _, text := range want.has {
			if !strings.Contains(errs, text) {
				t.Errorf("FREEHOLD_DEBUG=%s: no %q in\n%s", mode, text, errs)
			}
		}
		for _, text := range want.hasNot {
			if strings.Contains(errs, text) {
				t.Errorf("FREEHOLD_DEBUG=%s: %q in\n%s", mode, text, errs)
			}
		}
	}
}

// WriteLeaks says so if there are no leaks, and which blocks it knows of.
func TestWriteLeaksWithoutLeaks(t *testing.T) {
	if child.Is(t) {
		h := freehold.NewHeap(nil)
		h.Free(direct(h))
		h.Close()
		track.WriteLeaks(os.Stderr)
		return
	}
	for mode, want := range map[string]string{
		"":             "freehold: no block is recorded, so none is listed: see FREEHOLD_DEBUG=leak\n",
		"leak":         "freehold: no block is live\n",
		"profile=4096": "freehold: no block is live of those recorded, by one in 4096 bytes\n",
	} {
		if _, got, err := child.Run(t, "FREEHOLD_DEBUG="+mode); err != nil || got != want {
			t.Errorf("FREEHOLD_DEBUG=%s: %v, %q", mode, err, got)
		}
	}
}

// AtExit of a program that closed its heaps before reports the blocks that were live in them,
// and the memory of the heaps.
func TestAtExitOfClosedHeaps(t *testing.T) {
	if child.Is(t) {
		h := freehold.NewHeap(&freehold.HeapOptions{Name: "index", MaxBytes: 4 << 20})
		direct(h)
		h.Alloc(8<<20, 8)
		h.Close()
		h.Close()
		for range 1000 {
			freehold.NewHeap(nil).Close()
		}
		track.AtExit()
		return
	}
	for mode, want := range map[string]string{
		"":               `^$`,
		"leak":           `^freehold: 1 block, 100 bytes live at Close of their heap, by 1 stack\n\n1 block, 100 bytes of heap "index", allocated at:\n.*track_test\.direct\n`,
		"leak,profile=1": `^freehold: 1 block, 100 bytes live at Close `,
		"stats": `^ +live .*  heap\n.* "default"\n.*  total\n +live .*  heap, at its Close\n +(112|144) +1 +\d+ +\d+ +1  "index"\n( +0 +0 +\d+ +\d+ +0  "heap \d+"\n){999}` +
			`and 1 heap closed later\n$`,
		"stats,guard": `\n +live guards +ever +skipped  heap\n +1 +1 +0  "index"\n$`,
	} {
		if mode == "stats,guard" && !watch.CanGuard {
			continue
		}
		_, errs, err := child.Run(t, "FREEHOLD_DEBUG="+mode)
		if err != nil {
			t.Errorf("%s: %v", mode, err)
		}
		if !regexp.MustCompile(want).MatchString(errs) {
			t.Errorf("FREEHOLD_DEBUG=%s: no %s in\n%s", mode, want, errs)
		}
	}
}
