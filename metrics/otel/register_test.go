package otel_test

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
	freeholdmetrics "github.com/freehold-go/freehold/metrics/otel"
	"github.com/freehold-go/freehold/track"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

func ExampleRegister() {
	registration, err := freeholdmetrics.Register(otel.Meter("example.com/myservice"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer registration.Unregister()
}

func newHeap(t *testing.T, name string, maxBytes int, sizes ...int) *freehold.Heap {
	h := freehold.NewHeap(&freehold.HeapOptions{Name: name, MaxBytes: maxBytes})
	t.Cleanup(h.Close)
	for _, size := range sizes {
		freehold.Must(h.Alloc(size, 8))
	}
	return h
}

// register registers on a reader's meter.
func register(t *testing.T) (*sdk.ManualReader, metric.Registration) {
	t.Helper()
	reader := sdk.NewManualReader()
	r, err := freeholdmetrics.Register(sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("test"))
	if err != nil {
		t.Fatal(err)
	}
	return reader, r
}

// A point is what was observed of one heap.
type point struct {
	unit, help string
	value      int64
	counts     bool
}

// collect returns the points of heaps of one name, or of a tag.
func collect(t *testing.T, reader *sdk.ManualReader, heap string) map[string]point {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	points := map[string]point{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			sum, ok := m.Data.(metricdata.Sum[int64])
			if !ok {
				t.Fatalf("%s is %T, want a sum", m.Name, m.Data)
			}
			for _, p := range sum.DataPoints {
				name, _ := p.Attributes.Value(freeholdmetrics.HeapNameKey)
				if tag, ok := p.Attributes.Value(freeholdmetrics.TagKey); ok {
					name = tag
				}
				if account, ok := p.Attributes.Value(freeholdmetrics.AccountNameKey); ok {
					name = account
				}
				if name.AsString() != heap {
					continue
				}
				if _, twice := points[m.Name]; twice {
					t.Errorf("%s is there twice", m.Name)
				}
				points[m.Name] = point{m.Unit, m.Description, p.Value, sum.IsMonotonic}
			}
		}
	}
	return points
}

// Names are of lower-case words with dots between them, and each has a unit.
func TestNamesFollowTheConventions(t *testing.T) {
	newHeap(t, t.Name(), 8<<20, 64)
	reader, _ := register(t)
	points := collect(t, reader, t.Name())
	if len(points) != 17 {
		t.Errorf("%d metrics, want 17", len(points))
	}
	tag := freehold.NewTagged(freehold.Default(), "conventions").Tag()
	maps.Copy(points, collect(t, reader, tag))
	if len(points) != 17+5 {
		t.Errorf("%d metrics, want 17 and 5", len(points))
	}
	for name, p := range points {
		if !regexp.MustCompile(`^freehold\.(heap|tag)(\.[a-z]+(_[a-z]+)*)+$`).MatchString(name) {
			t.Errorf("name %q", name)
		}
		if !regexp.MustCompile(`^(By|\{[a-z]+\})$`).MatchString(p.unit) {
			t.Errorf("%s: unit %q", name, p.unit)
		}
		if !strings.HasSuffix(p.help, ".") {
			t.Errorf("%s: description %q", name, p.help)
		}
	}
}

func TestEveryFigureIsObserved(t *testing.T) {
	h := newHeap(t, t.Name(), 8<<20, 64, 4096, 100_000)
	reader, registration := register(t)
	if _, err := h.Alloc(9<<20, 8); err == nil {
		t.Fatal("a block beyond the limit")
	}
	h.Free(freehold.Must(h.Alloc(1<<20, 8)))
	h.Trim()
	points, st := collect(t, reader, t.Name()), h.Stats()
	for _, m := range []struct {
		name, unit string
		counts     bool
		want       int64
	}{
		{"live", "By", false, int64(st.LiveBytes)},
		{"live_blocks", "{block}", false, int64(st.Live)},
		{"large", "By", false, int64(st.LargeBytes)},
		{"large_blocks", "{block}", false, int64(st.Large)},
		{"active", "By", false, int64(st.Active)},
		{"resident", "By", false, int64(st.Resident)},
		{"retained", "By", false, int64(st.Retained)},
		{"metadata", "By", false, int64(st.Metadata)},
		{"committed", "By", false, int64(st.Committed)},
		{"limit", "By", false, int64(st.MaxBytes)},
		{"slow_allocs", "{call}", true, int64(st.SlowAllocs)},
		{"slow_frees", "{call}", true, int64(st.SlowFrees)},
		{"refusals", "{call}", true, int64(st.Refusals)},
		{"purged", "By", true, int64(st.PurgedBytes)},
	} {
		p, found := points["freehold.heap."+m.name]
		if !found || p.value != m.want || p.unit != m.unit || p.counts != m.counts || m.want == 0 {
			t.Errorf("%s: %+v, want %+v", m.name, p, m)
		}
	}
	if err := registration.Unregister(); err != nil {
		t.Fatal(err)
	}
	if points := collect(t, reader, t.Name()); len(points) != 0 {
		t.Errorf("after Unregister: %v", points)
	}
}

func TestHeapsOfOneNameAreOnePoint(t *testing.T) {
	newHeap(t, t.Name(), 8<<20, 64)
	newHeap(t, t.Name(), 0, 64, 64)
	reader, _ := register(t)
	points := collect(t, reader, t.Name())
	if points["freehold.heap.live_blocks"].value != 3 {
		t.Errorf("%+v, want 3 blocks", points)
	}
	if p, found := points["freehold.heap.limit"]; found {
		t.Errorf("limit %+v, which one of the heaps has not", p)
	}
}

// Tags have their figures, a tag those of the tags below it.
func TestTagsAreObserved(t *testing.T) {
	db := freehold.NewTagged(newHeap(t, t.Name(), 0), "otel")
	cache := freehold.NewTagged(db, "cache")
	freehold.Must(cache.Alloc(100, 8))
	cache.Free(freehold.Must(cache.Alloc(50, 8)))
	freehold.Must(db.Alloc(7, 8))
	reader, _ := register(t)
	for tag, c := range map[string]freehold.Counts{"otel": db.Counts(), "otel/cache": cache.Counts()} {
		points := collect(t, reader, tag)
		for name, want := range map[string]int64{
			"live": int64(c.LiveBytes), "live_blocks": int64(c.Live), "peak": int64(c.PeakBytes), "allocs": int64(c.Allocs), "frees": int64(c.Frees),
		} {
			p := points["freehold.tag."+name]
			if p.value != want || want == 0 || p.counts != (name == "allocs" || name == "frees") {
				t.Errorf("%s of %s: %+v, want %d", name, tag, p, want)
			}
		}
	}
}

func TestGuardsAreObserved(t *testing.T) {
	was := track.SetGuardRate(1, 0)
	h := newHeap(t, t.Name(), 0, 64, 64)
	track.SetGuardRate(was, 0)
	reader, _ := register(t)
	points, st := collect(t, reader, t.Name()), h.Stats()
	for name, want := range map[string]int64{"guarded": int64(st.Guarded), "guards": int64(st.GuardedEver), "skipped_guards": int64(st.GuardsSkipped)} {
		if p, found := points["freehold.heap."+name]; !found || p.value != want {
			t.Errorf("%s: %+v, want %d", name, p, want)
		}
	}
}

var errMeter = errors.New("no instruments")

// A broken meter makes no instrument of a kind, or takes no callback.
type broken struct {
	noop.Meter
	part string
}

func (b broken) Int64ObservableCounter(string, ...metric.Int64ObservableCounterOption) (metric.Int64ObservableCounter, error) {
	if b.part == "counter" {
		return nil, errMeter
	}
	return noop.Int64ObservableCounter{}, nil
}

func (b broken) Int64ObservableUpDownCounter(string, ...metric.Int64ObservableUpDownCounterOption) (metric.Int64ObservableUpDownCounter, error) {
	if b.part == "up-down" {
		return nil, errMeter
	}
	return noop.Int64ObservableUpDownCounter{}, nil
}

func (b broken) RegisterCallback(metric.Callback, ...metric.Observable) (metric.Registration, error) {
	if b.part == "callback" {
		return nil, errMeter
	}
	return noop.Registration{}, nil
}

func TestErrorsOfTheMeter(t *testing.T) {
	for _, part := range []string{"counter", "up-down", "callback"} {
		r, err := freeholdmetrics.Register(broken{part: part})
		if r != nil || !errors.Is(err, errMeter) || err.Error() != "freehold: otel.Register: no instruments" {
			t.Errorf("%s: %v, %v", part, r, err)
		}
	}
	if _, err := freeholdmetrics.Register(broken{}); err != nil {
		t.Error(err)
	}
}

// A budget has its figures while it runs.
func TestBudgetIsObserved(t *testing.T) {
	reader, _ := register(t)
	const prefix = "freehold.budget."
	b, err := budget.Start(&budget.Options{Limit: 1 << 30, Headroom: 100 << 20})
	if err != nil {
		t.Fatal(err)
	}
	points := collect(t, reader, "")
	b.Stop()
	for name, want := range map[string]point{
		"limit": {unit: "By", value: 1 << 30}, "headroom": {unit: "By", value: 100 << 20}, "off_heap": {unit: "By"}, "others": {unit: "By"},
		"go_held": {unit: "By"}, "go_live": {unit: "By"}, "go_limit": {unit: "By"}, "short": {unit: "By"},
		"pressure": {unit: "{level}"}, "wanted": {unit: "By"},
		"adjustments": {unit: "{change}", counts: true}, "reclaims": {unit: "{collection}", counts: true}, "rounds": {unit: "{round}", counts: true},
	} {
		p, found := points[prefix+name]
		if !found || p.unit != want.unit || p.counts != want.counts || want.value != 0 && p.value != want.value || !strings.HasSuffix(p.help, ".") {
			t.Errorf("%s: %+v, want %+v", name, p, want)
		}
	}
	if points[prefix+"go_held"].value == 0 || points[prefix+"go_limit"].value == 0 {
		t.Errorf("Go holds nothing: %+v", points)
	}
	for name := range collect(t, reader, "") {
		if strings.HasPrefix(name, prefix) {
			t.Errorf("%s of a budget that was stopped", name)
		}
	}
}

func TestAccountsAreObserved(t *testing.T) {
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
	reader, _ := register(t)
	points, st := collect(t, reader, t.Name()+"/search"), a.Stats()
	for name, want := range map[string]point{
		"used": {unit: "By", value: st.Used}, "reserved": {unit: "By", value: st.Reserved},
		"live": {unit: "By", value: st.LiveBytes}, "live_blocks": {unit: "{block}", value: int64(st.Live)},
		"soft_limit": {unit: "By", value: st.Soft}, "limit": {unit: "By", value: st.MaxBytes},
		"pressure": {unit: "{level}", value: int64(st.Pressure.Level)},
		"refusals": {unit: "{call}", value: int64(st.Refusals), counts: true}, "evicted": {unit: "By", value: st.Evicted, counts: true},
	} {
		p := points["freehold.account."+name]
		if p.unit != want.unit || p.value != want.value || p.counts != want.counts || p.value == 0 || !strings.HasSuffix(p.help, ".") {
			t.Errorf("%s: %+v, want %+v", name, p, want)
		}
	}
	points = collect(t, reader, t.Name())
	for _, name := range []string{"limit", "soft_limit"} {
		if p, found := points["freehold.account."+name]; found {
			t.Errorf("%s of an account without one: %+v", name, p)
		}
	}
}
