package prometheus_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/cache"
	"github.com/freehold-go/freehold/metrics"
	freeholdmetrics "github.com/freehold-go/freehold/metrics/prometheus"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func ExampleNewCollector() {
	prometheus.MustRegister(freeholdmetrics.NewCollector())
	http.Handle("/metrics", promhttp.Handler())
}

func newHeap(t *testing.T, name string, maxBytes int) *freehold.Heap {
	h := freehold.NewHeap(&freehold.HeapOptions{Name: name, MaxBytes: maxBytes, Decay: -1}) // no tick changes a figure
	t.Cleanup(h.Close)
	freehold.Must(h.Alloc(64, 8))
	return h
}

// newCache returns a cache whose three counters of evictions differ.
func newCache(t *testing.T, parent freehold.Allocator) *cache.Cache {
	c := cache.New(parent, &cache.Options{Name: "sessions", MaxBytes: 1 << 20})
	t.Cleanup(c.Close)
	for i := range 300 {
		if err := c.Set(fmt.Append(nil, i), make([]byte, 10_000)); err != nil {
			t.Fatal(err)
		}
		c.Get(nil, fmt.Append(nil, i+i%2*1000))
	}
	c.Resize(cache.MinBytes)
	if st := c.Stats(); st.Evicted == 0 || st.Shrunk == 0 || st.Evicted == st.Shrunk || st.Hits != 150 || st.Misses != 150 {
		t.Fatalf("%+v", st)
	}
	return c
}

// scrape returns the page that Prometheus would scrape.
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

// wantFigures checks that the page has the values and kinds of figures.
func wantFigures[S any](t *testing.T, text, of, label string, figures []metrics.Figure[S], st S) {
	t.Helper()
	for _, f := range figures {
		kind, value := "gauge", regexp.QuoteMeta(fmt.Sprintf("%v", float64(f.Value(&st))))
		if f.Rises {
			kind = "counter"
		}
		name := regexp.MustCompile(`(?m)^# HELP (freehold_` + of + `_\w+) ` + regexp.QuoteMeta(f.Help) + `$`).FindStringSubmatch(text)
		if name == nil {
			t.Errorf("no figure of %s: %s", of, f.Help)
			continue
		}
		labels := label
		if f.Of != "" {
			labels = strings.Replace(label, "}", fmt.Sprintf(",reason=%q}", f.Of), 1)
		}
		shown := regexp.MustCompile(`(?m)^` + name[1] + regexp.QuoteMeta(labels) + ` ` + value + `$`).MatchString(text)
		if want := !f.Limit || f.Value(&st) != 0; shown != want || !strings.Contains(text, "# TYPE "+name[1]+" "+kind+"\n") {
			t.Errorf("%s%s is not a %s of %s in %s", name[1], labels, kind, value, text)
		}
	}
}

// Each figure of each list is on the page, under its name in the package's documentation. Names
// follow Prometheus's conventions.
func TestFiguresAreCollected(t *testing.T) {
	h := newHeap(t, "heap", 8<<20)
	if _, err := h.Alloc(9<<20, 8); err == nil {
		t.Fatal("a block beyond the limit")
	}
	db := freehold.NewTagged(h, "prometheus")
	below := freehold.NewTagged(db, "cache")
	below.Free(freehold.Must(below.Alloc(50, 8)))
	freehold.Must(db.Alloc(7, 8))
	process := budget.NewAccount(nil, &budget.AccountOptions{Name: t.Name(), Decay: -1})
	defer process.Close()
	a := budget.NewAccount(process, &budget.AccountOptions{Name: "search", MaxBytes: 8 << 20, Decay: -1})
	freehold.Must(a.Alloc(5<<20, 1))
	sessions := newCache(t, h)
	if strings.Contains(scrape(t), "freehold_budget") {
		t.Error("figures of no budget")
	}
	b, err := budget.Start(&budget.Options{Limit: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	text := scrape(t)
	wantFigures(t, text, "heap", `{heap="heap"}`, metrics.HeapFigures, h.Stats())
	for _, tag := range []*freehold.Tagged{db, below} {
		wantFigures(t, text, "tag", fmt.Sprintf("{tag=%q}", tag.Tag()), metrics.TagFigures, freehold.TagStats{Counts: tag.Counts()})
	}
	for _, a := range []*budget.Account{process, a} {
		wantFigures(t, text, "account", fmt.Sprintf("{account=%q}", a.Name()), metrics.AccountFigures, a.Stats())
	}
	wantFigures(t, text, "cache", `{cache="sessions"}`, metrics.CacheFigures, sessions.Stats())
	if want := "\nfreehold_budget_limit_bytes 1.073741824e+09\n"; !strings.Contains(text, want) {
		t.Errorf("no %s in %s", want, text)
	}
	problems, err := testutil.CollectAndLint(freeholdmetrics.NewCollector())
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}

	source, err := os.ReadFile("collector.go")
	if err != nil {
		t.Fatal(err)
	}
	var named, shown []string
	for _, line := range regexp.MustCompile(`(?m)^//\t(freehold_\w+)( +[a-z\d].*)?$`).FindAllStringSubmatch(string(source), -1) {
		named = append(named, line[1])
	}
	for _, line := range regexp.MustCompile(`(?m)^# TYPE (freehold_\w+)`).FindAllStringSubmatch(text, -1) {
		shown = append(shown, line[1])
	}
	slices.Sort(named)
	if !slices.Equal(shown, named) {
		t.Errorf("shown are %q, and the documentation names %q", shown, named)
	}
}

func TestAnyNameIsShown(t *testing.T) {
	newHeap(t, "a \"b\"\\\nc", 0)
	newHeap(t, "\xff", 0)
	for _, heap := range []string{`a \"b\"\\\nc`, `\"\\xff\"`} {
		if want := `freehold_heap_live_blocks{heap="` + heap + `"} 1`; !strings.Contains(scrape(t), want) {
			t.Errorf("no %s", want)
		}
	}
}
