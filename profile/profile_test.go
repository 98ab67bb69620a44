package profile_test

import (
	"bytes"
	"context"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/profile"
	"github.com/freehold-go/freehold/track"
	pb "github.com/google/pprof/profile"
)

func TestImportTurnsSamplingOn(t *testing.T) {
	if got := track.SampleRate(); got != track.DefaultSampleRate && os.Getenv("FREEHOLD_DEBUG") == "" {
		t.Errorf("the rate is %d", got)
	}
}

func sampleAt(t *testing.T, rate int) {
	was := track.SetSampleRate(rate)
	t.Cleanup(func() { track.SetSampleRate(was) })
}

func newHeap(t *testing.T) *freehold.Heap {
	h := freehold.NewHeap(&freehold.HeapOptions{Name: t.Name()})
	t.Cleanup(h.Close)
	return h
}

func alloc(h *freehold.Heap, size int) []byte {
	b, err := h.Alloc(size, 8)
	if err != nil {
		panic(err)
	}
	return b
}

//go:noinline
func site1(h *freehold.Heap, size int) []byte { return alloc(h, size) }

//go:noinline
func site2(h *freehold.Heap, size int) []byte { return alloc(h, size) }

// sites are functions that allocate, each with its own stack.
var sites = []func(h *freehold.Heap, size int) []byte{
	site1,
	site2,
	func(h *freehold.Heap, size int) []byte { return alloc(h, size) },
	func(h *freehold.Heap, size int) []byte { return alloc(h, size) },
	func(h *freehold.Heap, size int) []byte { return alloc(h, size) },
	func(h *freehold.Heap, size int) []byte { return alloc(h, size) },
	func(h *freehold.Heap, size int) []byte { return alloc(h, size) },
	func(h *freehold.Heap, size int) []byte { return alloc(h, size) },
	func(h *freehold.Heap, size int) []byte { return alloc(h, size) },
	func(h *freehold.Heap, size int) []byte { return alloc(h, size) },
	func(h *freehold.Heap, size int) []byte { return alloc(h, size) },
	func(h *freehold.Heap, size int) []byte { return alloc(h, size) },
}

// sizeOf returns a random size for a site: each fourth site has small, medium, larger or large
// blocks.
func sizeOf(r *rand.Rand, site int) int {
	switch site % 4 {
	case 0:
		return 8 + r.IntN(120)
	case 1:
		return 200 + r.IntN(1800)
	case 2:
		return 4000 + r.IntN(28000)
	default:
		return 40000 + r.IntN(200000)
	}
}

// The profile is within 5% of the live bytes in all, and within 10% for each of the top ten
// stacks. The test takes about ten times the samples that this needs on average.
func TestProfileTellsTheTruth(t *testing.T) {
	const rate = 2 << 10
	sampleAt(t, rate)
	h := newHeap(t)
	r := rand.New(rand.NewPCG(1, 2))
	var live [12]int // bytes by site
	type block struct {
		b    []byte
		site int
	}
	var blocks []block
	for total := 0; total < 96<<20; {
		site := r.IntN(len(sites))
		for kept := 0; kept < 200<<10; { // about the same bytes by each site
			size := sizeOf(r, site)
			blocks = append(blocks, block{sites[site](h, size), site})
			live[site] += size
			kept += size
			total += size
		}
		for range 20 { // free some blocks of any age
			i := r.IntN(len(blocks))
			h.Free(blocks[i].b)
			live[blocks[i].site] -= len(blocks[i].b)
			blocks[i] = blocks[len(blocks)-1]
			blocks = blocks[:len(blocks)-1]
		}
	}
	p := written(t, profile.Write)
	got := map[string]float64{}
	sum := 0.0
	for _, s := range p.Sample {
		if s.Label["heap"][0] == t.Name() {
			name := s.Location[0].Line[0].Function.Name
			if strings.HasSuffix(name, ".alloc") {
				name = s.Location[1].Line[0].Function.Name
			}
			got[name] += float64(s.Value[3])
			sum += float64(s.Value[3])
		}
	}
	bytes := 0
	for _, n := range live {
		bytes += n
	}
	if off := math.Abs(sum/float64(bytes) - 1); off > 0.05 {
		t.Errorf("%.0f bytes in use, want %d: %.1f%% off", sum, bytes, off*100)
	}
	order := make([]int, len(sites))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return live[b] - live[a] })
	for _, site := range order[:10] {
		name := runtime.FuncForPC(reflect.ValueOf(sites[site]).Pointer()).Name()
		if off := math.Abs(got[name]/float64(live[site]) - 1); off > 0.10 {
			t.Errorf("%s: %.0f bytes in use, want %d: %.1f%% off", name, got[name], live[site], off*100)
		}
	}
	for _, b := range blocks {
		h.Free(b.b)
	}
	for _, s := range written(t, profile.Write).Sample {
		if s.Label["heap"][0] == t.Name() && (s.Value[2] != 0 || s.Value[3] != 0) {
			t.Errorf("all is free, and %v are in use by %v", s.Value, s.Location[0].Line)
		}
	}
}

// written returns the parsed and checked profile that write writes.
func written(t *testing.T, write func(io.Writer) error) *pb.Profile {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	p, err := pb.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CheckValid(); err != nil {
		t.Fatal(err)
	}
	return p
}

// The profile has Go's sample types in Go's order, so tools can compare the two.
func TestFormat(t *testing.T) {
	const rate = 5 // misses a block of 1000 bytes with probability e^-200
	sampleAt(t, rate)
	h := newHeap(t)
	defer h.Free(site1(h, 1000))
	p := written(t, profile.Write)
	var types []string
	for _, v := range p.SampleType {
		types = append(types, v.Type+"/"+v.Unit)
	}
	const want = "alloc_objects/count alloc_space/bytes inuse_objects/count inuse_space/bytes"
	if got := strings.Join(types, " "); got != want || p.DefaultSampleType != "inuse_space" || p.PeriodType.Type != "space" || p.PeriodType.Unit != "bytes" || p.Period != rate {
		t.Errorf("%s, default %s, period %d %v", got, p.DefaultSampleType, p.Period, p.PeriodType)
	}
	for _, s := range p.Sample {
		if s.Label["heap"][0] != t.Name() {
			continue
		}
		var stack []string
		for _, l := range s.Location {
			stack = append(stack, l.Line[0].Function.Name)
		}
		const module = "github.com/freehold-go/freehold/profile_test."
		if want := []string{module + "alloc", module + "site1", module + "TestFormat", "testing.tRunner"}; len(stack) < 4 || !slices.Equal(stack[:4], want) {
			t.Errorf("stack %q, want %q", stack, want)
		}
		if !slices.Equal(s.Value, []int64{1, 1000, 1, 1000}) || len(s.NumLabel) > 0 {
			t.Errorf("values %v, numbers %v, which would keep the samples of two profiles apart", s.Value, s.NumLabel)
		}
		line := s.Location[1].Line[0]
		if _, file, _, _ := runtime.Caller(0); line.Function.Filename != file || line.Line == 0 {
			t.Errorf("%s:%d, want a line of %s", line.Function.Filename, line.Line, file)
		}
	}
}

var garbage []byte

// The process's profile covers Go's heap and off-heap memory.
func TestProcess(t *testing.T) {
	sampleAt(t, 1)
	h := newHeap(t)
	defer h.Free(site1(h, 1<<20))
	garbage = make([]byte, 64<<20) // large enough to be sampled for certain
	runtime.GC()
	runtime.GC()
	heaps := map[string]int64{}
	for _, s := range written(t, profile.WriteProcess).Sample {
		heaps[s.Label["heap"][0]] += s.Value[3]
	}
	runtime.KeepAlive(garbage)
	garbage = nil
	if heaps["go"] < 60<<20 || heaps[t.Name()] != 1<<20 {
		t.Errorf("%v", heaps)
	}
}

// pprof returns the path of the pprof program.
func pprof(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds pprof")
	}
	exec.Command("go", "tool", "pprof", "-help").Run() // this builds it
	path, err := exec.Command("go", "tool", "-n", "pprof").Output()
	if err != nil {
		t.Skip(err)
	}
	return strings.TrimSpace(string(path))
}

// run runs go tool pprof.
func run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(pprof(t), args...)
	cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir(), "PPROF_BINARY_PATH="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go tool pprof %q: %v\n%s", args, err, out)
	}
	return string(out)
}

func serve(t *testing.T) string {
	mux := http.NewServeMux()
	mux.Handle("/debug/pprof/offheap", profile.Handler())
	mux.Handle("/debug/pprof/process", profile.ProcessHandler())
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL + "/debug/pprof/"
}

// go tool pprof reads the profile from a server, beside Go's own and against an earlier one, and
// knows the labels.
func TestGoToolPprof(t *testing.T) {
	sampleAt(t, 1)
	h := newHeap(t)
	defer h.Free(site1(h, 3<<20))
	base := filepath.Join(t.TempDir(), "base.pb.gz")
	f, err := os.Create(base)
	if err != nil {
		t.Fatal(err)
	}
	if err := profile.Write(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	defer h.Free(site2(h, 2<<20))
	tagged := freehold.NewTagged(freehold.NewTagged(h, "db"), "cache")
	defer tagged.Free(freehold.Must(tagged.Alloc(1<<20, 8)))
	url := serve(t)
	mine := "-tagfocus=heap=" + t.Name()
	tests := []struct {
		args []string
		want []string // regular expressions for lines
		none string
	}{
		{[]string{"-top", mine, url + "offheap"}, []string{`Type: inuse_space`, ` 5MB .* 5MB .*alloc$`, ` 3MB .*site1$`, ` 2MB .*site2$`}, `Heap\)`},
		{[]string{"-top", "-sample_index=alloc_objects", mine, url + "offheap"}, []string{`Type: alloc_objects`, ` 2 .*alloc`}, ``},
		{[]string{"-top", mine, "-base", base, url + "offheap"}, []string{` 2MB .*site2$`}, `site1`},
		{[]string{"-tags", mine, url + "offheap"}, []string{`heap: Total`, t.Name(), `tag: Total`, `db/cache`}, ``},
		{[]string{"-top", "-tagfocus=tag=db", url + "offheap"}, []string{` 1MB .*TestGoToolPprof$`}, `site1`},
		{[]string{"-top", url + "process"}, []string{` 3MB .*site1$`}, ``},
		{[]string{"-top", base, url + "process"}, []string{` 6MB .*site1$`}, ``},
	}
	for _, tt := range tests {
		out := run(t, tt.args...)
		for _, want := range tt.want {
			if !regexp.MustCompile("(?m)" + want).MatchString(out) {
				t.Errorf("%q: no line %q in\n%s", tt.args, want, out)
			}
		}
		if tt.none != "" && regexp.MustCompile(tt.none).MatchString(out) {
			t.Errorf("%q: %q in\n%s", tt.args, tt.none, out)
		}
	}
}

// freeAddress returns an unused local address.
func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// The pages of go tool pprof -http show the profile.
func TestGoToolPprofPages(t *testing.T) {
	sampleAt(t, 1)
	h := newHeap(t)
	defer h.Free(site1(h, 3<<20))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, pprof(t), "-no_browser", "-http="+freeAddress(t), serve(t)+"offheap")
	cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
	r, w := io.Pipe()
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	go func() { w.CloseWithError(cmd.Wait()) }()
	defer func() {
		cancel()
		io.Copy(io.Discard, r)
	}()
	var text []byte
	address := regexp.MustCompile(`Serving web UI on (http://\S+)`)
	for address.FindSubmatch(text) == nil {
		b := make([]byte, 1000)
		n, err := r.Read(b)
		if text = append(text, b[:n]...); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	go io.Copy(io.Discard, r)
	for _, page := range []string{"/ui/top", "/ui/flamegraph"} {
		var response *http.Response
		for { // pprof prints the address before it listens
			var err error
			if response, err = http.Get(string(address.FindSubmatch(text)[1]) + page); err == nil {
				break
			} else if ctx.Err() != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || !bytes.Contains(body, []byte("site1")) {
			t.Errorf("%s: status %d, %v, %d bytes without site1", page, response.StatusCode, err, len(body))
		}
	}
}

func TestHandler(t *testing.T) {
	sampleAt(t, 1)
	h := newHeap(t)
	old := site1(h, 3000)
	defer h.Free(old)
	get := func(query string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		profile.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/debug/pprof/offheap"+query, nil))
		return w
	}
	w := get("")
	if got := w.Header().Get("Content-Disposition"); w.Code != http.StatusOK || got != `attachment; filename="offheap.pb.gz"` {
		t.Errorf("status %d, %s", w.Code, got)
	}
	for _, query := range []string{"?seconds=x", "?seconds=0", "?seconds=-1", "?seconds=NaN", "?seconds=1e9"} {
		if w := get(query); w.Code != http.StatusBadRequest || w.Body.String() != "seconds: want a number up to 3600\n" {
			t.Errorf("%s: status %d, %s", query, w.Code, w.Body)
		}
	}
	// With ?seconds the handler serves only the changes in that time; here there are none.
	start := time.Now().UnixNano()
	p := written(t, func(to io.Writer) error {
		_, err := to.Write(get("?seconds=0.001").Body.Bytes())
		return err
	})
	if end := time.Now().UnixNano(); p.DurationNanos <= 0 || p.TimeNanos-p.DurationNanos < start || p.TimeNanos > end {
		t.Errorf("%d ns until %d, want a part of the time from %d to %d", p.DurationNanos, p.TimeNanos, start, end)
	}
	for _, s := range p.Sample {
		if s.Label["heap"][0] == t.Name() {
			t.Errorf("nothing happened, and %v were allocated by %v", s.Value, s.Location[0].Line)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	gone := httptest.NewRecorder()
	profile.Handler().ServeHTTP(gone, httptest.NewRequestWithContext(ctx, "GET", "/?seconds=3600", nil))
	if gone.Body.Len() != 0 {
		t.Errorf("%d bytes for a client that is gone", gone.Body.Len())
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestErrorsOfTheWriter(t *testing.T) {
	for i, write := range []func(io.Writer) error{profile.Write, profile.WriteProcess} {
		if err := write(full{}); err != io.ErrShortWrite {
			t.Errorf("%d: %v", i, err)
		}
	}
}
