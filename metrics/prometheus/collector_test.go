package prometheus_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
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

// A budget has its figures while it runs.
func TestBudgetIsCollected(t *testing.T) {
	if strings.Contains(scrape(t), "freehold_budget") {
		t.Error("figures of no budget")
	}
	b, err := budget.Start(&budget.Options{Limit: 1 << 30, Headroom: 100 << 20})
	if err != nil {
		t.Fatal(err)
	}
	problems, err := testutil.CollectAndLint(freeholdmetrics.NewCollector())
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	text := scrape(t)
	b.Stop()
	for name, kind := range map[string]string{
		"limit_bytes": "gauge", "headroom_bytes": "gauge", "off_heap_bytes": "gauge", "others_bytes": "gauge",
		"go_held_bytes": "gauge", "go_live_bytes": "gauge", "go_limit_bytes": "gauge", "short_bytes": "gauge",
		"pressure": "gauge", "wanted_bytes": "gauge",
		"adjustments_total": "counter", "reclaims_total": "counter", "rounds_total": "counter",
	} {
		if line := "# TYPE freehold_budget_" + name + " " + kind + "\nfreehold_budget_" + name + " "; !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
	for _, line := range []string{"limit_bytes 1.073741824e+09\n", "headroom_bytes 1.048576e+08\n"} {
		if line = "\nfreehold_budget_" + line; !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
	if strings.Contains(scrape(t), "freehold_budget") {
		t.Error("figures of a budget that was stopped")
	}
}

func TestAccountsAreCollected(t *testing.T) {
	process := budget.NewAccount(nil, &budget.AccountOptions{Name: t.Name()})
	defer process.Close()
	a := budget.NewAccount(process, &budget.AccountOptions{Name: "search", Soft: 4 << 20, MaxBytes: 8 << 20})
	b := freehold.Must(a.Alloc(5<<20, 1))
	freehold.Must(a.AllocOrEvict(5<<20, 1, func(int) int { a.Free(b); return 5 << 20 }))
	r, err := a.Reserve(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	problems, err := testutil.CollectAndLint(freeholdmetrics.NewCollector())
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	text, st := scrape(t), a.Stats()
	for name, want := range map[string]any{
		"used_bytes": st.Used, "reserved_bytes": st.Reserved, "live_blocks": st.Live, "live_bytes": st.LiveBytes,
		"soft_limit_bytes": st.Soft, "limit_bytes": st.MaxBytes, "pressure": int(st.Pressure.Level),
		"refusals_total": st.Refusals, "evicted_bytes_total": st.Evicted,
	} {
		_, rest, found := strings.Cut(text, fmt.Sprintf("\nfreehold_account_%s{account=%q} ", name, t.Name()+"/search"))
		var got, number float64
		fmt.Sscan(rest, &got)
		fmt.Sscan(fmt.Sprint(want), &number)
		if !found || got != number || got == 0 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if line := fmt.Sprintf("limit_bytes{account=%q}", t.Name()); strings.Contains(text, line) {
		t.Errorf("%s of an account without a limit", line)
	}
}
