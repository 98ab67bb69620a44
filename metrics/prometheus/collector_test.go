package prometheus_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	freeholdmetrics "github.com/freehold-go/freehold/metrics/prometheus"
	"github.com/freehold-go/freehold/track"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func ExampleNewCollector() {
	prometheus.MustRegister(freeholdmetrics.NewCollector())
	http.Handle("/metrics", promhttp.Handler())
}

func newHeap(t *testing.T, name string, maxBytes int, sizes ...int) *freehold.Heap {
	h := freehold.NewHeap(&freehold.HeapOptions{Name: name, MaxBytes: maxBytes})
	t.Cleanup(h.Close)
	for _, size := range sizes {
		freehold.Must(h.Alloc(size, 8))
	}
	return h
}

// scrape returns what a server shows to Prometheus.
func scrape(t *testing.T) string {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(freeholdmetrics.NewCollector())
	w := httptest.NewRecorder()
	promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func TestNamesFollowTheConventions(t *testing.T) {
	newHeap(t, t.Name(), 8<<20, 64)
	problems, err := testutil.CollectAndLint(freeholdmetrics.NewCollector())
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// Every figure has its HELP, TYPE and unit, and says what Stats says.
func TestEveryFigureIsCollected(t *testing.T) {
	h := newHeap(t, t.Name(), 8<<20, 64, 4096, 100_000)
	if _, err := h.Alloc(9<<20, 8); err == nil {
		t.Fatal("a block beyond the limit")
	}
	h.Free(freehold.Must(h.Alloc(1<<20, 8)))
	h.Trim()
	text, st := scrape(t), h.Stats()
	for _, m := range []struct {
		name, kind string
		value      any
	}{
		{"live_blocks", "gauge", st.Live},
		{"live_bytes", "gauge", st.LiveBytes},
		{"large_blocks", "gauge", st.Large},
		{"large_bytes", "gauge", st.LargeBytes},
		{"active_bytes", "gauge", st.Active},
		{"resident_bytes", "gauge", st.Resident},
		{"retained_bytes", "gauge", st.Retained},
		{"metadata_bytes", "gauge", st.Metadata},
		{"committed_bytes", "gauge", st.Committed},
		{"limit_bytes", "gauge", st.MaxBytes},
		{"slow_allocs_total", "counter", st.SlowAllocs},
		{"slow_frees_total", "counter", st.SlowFrees},
		{"refusals_total", "counter", st.Refusals},
		{"purged_bytes_total", "counter", st.PurgedBytes},
	} {
		if fmt.Sprint(m.value) == "0" {
			t.Errorf("%s is 0, which shows nothing", m.name)
		}
		name := "freehold_heap_" + m.name
		for _, line := range []string{
			"# HELP " + name + " ", "# TYPE " + name + " " + m.kind + "\n",
		} {
			if !strings.Contains(text, line) {
				t.Errorf("no %q in\n%s", line, text)
			}
		}
		var got float64
		var want float64
		line := name + fmt.Sprintf("{heap=%q} ", t.Name())
		_, rest, found := strings.Cut(text, "\n"+line)
		fmt.Sscan(rest, &got)
		fmt.Sscan(fmt.Sprint(m.value), &want)
		if !found || got != want {
			t.Errorf("%s%v, want %v", line, got, want)
		}
	}
}

func TestHeapsOfOneNameAreOneMetric(t *testing.T) {
	newHeap(t, t.Name(), 8<<20, 64)
	newHeap(t, t.Name(), 0, 64, 64)
	text := scrape(t)
	if want := fmt.Sprintf("\nfreehold_heap_live_blocks{heap=%q} 3\n", t.Name()); !strings.Contains(text, want) {
		t.Errorf("no %q in\n%s", want, text)
	}
	if strings.Contains(text, fmt.Sprintf("freehold_heap_limit_bytes{heap=%q}", t.Name())) {
		t.Error("a limit, which one of the heaps has not")
	}
}

func TestAnyNameIsShown(t *testing.T) {
	newHeap(t, "a \"b\"\\\nc", 0, 64)
	newHeap(t, "\xff", 0, 64)
	for _, heap := range []string{`a \"b\"\\\nc`, `\"\\xff\"`} {
		if want := `freehold_heap_live_blocks{heap="` + heap + `"} 1`; !strings.Contains(scrape(t), want) {
			t.Errorf("no %s", want)
		}
	}
}

// Tags have their figures, a tag those of the tags below it.
func TestTagsAreCollected(t *testing.T) {
	h := newHeap(t, t.Name(), 0)
	db := freehold.NewTagged(h, "prometheus")
	cache := freehold.NewTagged(db, "cache")
	freehold.Must(cache.Alloc(100, 8))
	cache.Free(freehold.Must(cache.Alloc(50, 8)))
	freehold.Must(db.Alloc(7, 8))
	text := scrape(t)
	for tag, c := range map[string]freehold.Counts{"prometheus": db.Counts(), "prometheus/cache": cache.Counts()} {
		for name, want := range map[string]any{
			"live_blocks": c.Live, "live_bytes": c.LiveBytes, "peak_bytes": c.PeakBytes, "allocs_total": c.Allocs, "frees_total": c.Frees,
		} {
			if line := fmt.Sprintf("\nfreehold_tag_%s{tag=%q} %v\n", name, tag, want); !strings.Contains(text, line) || fmt.Sprint(want) == "0" {
				t.Errorf("no %q in\n%s", line, text)
			}
		}
	}
}

func TestGuardsAreCollected(t *testing.T) {
	was := track.SetGuardRate(1, 0)
	h := newHeap(t, t.Name(), 0, 64, 64)
	track.SetGuardRate(was, 0)
	text, st := scrape(t), h.Stats()
	for name, want := range map[string]any{"guarded_blocks": st.Guarded, "guards_total": st.GuardedEver, "guards_skipped_total": st.GuardsSkipped} {
		if line := fmt.Sprintf("\nfreehold_heap_%s{heap=%q} %v\n", name, t.Name(), want); !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
}
