package otel_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/cache"
	"github.com/freehold-go/freehold/metrics"
	freeholdmetrics "github.com/freehold-go/freehold/metrics/otel"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
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

// A point is one observed value.
type point struct {
	unit, help string
	value      int64
	counts     bool
}

// collect returns the points of the heaps with a name, or of a tag, an account or caches.
func collect(t *testing.T, reader *sdk.ManualReader, of string) map[string]point {
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
				kind := attribute.Key(map[string]string{"heap": "freehold.heap.name", "tag": "freehold.tag", "account": "freehold.account.name", "cache": "freehold.cache.name"}[strings.Split(m.Name, ".")[1]])
				if name, _ := p.Attributes.Value(kind); name.AsString() == of {
					reason, _ := p.Attributes.Value("freehold.reason")
					points[m.Name+"/"+reason.AsString()] = point{m.Unit, m.Description, p.Value, sum.IsMonotonic}
				}
			}
		}
	}
	return points
}

// wantFigures checks the observed values of figures.
func wantFigures[S any](t *testing.T, points map[string]point, of string, figures []metrics.Figure[S], st S) {
	t.Helper()
	for _, f := range figures {
		got, found := points["freehold."+of+"."+f.Name+"/"+f.Of]
		want := point{f.Unit, f.Help, f.Value(&st), f.Rises}
		if is := !f.Limit || want.value != 0; found != is || is && got != want {
			t.Errorf("%s of %s: %+v, want %+v", f.Name, of, got, want)
		}
	}
}

// Each figure of each list is observed until Unregister. Names and units are as in the package's
// documentation.
func TestFiguresAreObserved(t *testing.T) {
	h := freehold.NewHeap(&freehold.HeapOptions{Name: "heap", MaxBytes: 8 << 20, Decay: -1}) // no tick changes a figure
	defer h.Close()
	if _, err := h.Alloc(9<<20, 8); err == nil {
		t.Fatal("a block beyond the limit")
	}
	db := freehold.NewTagged(h, "otel")
	below := freehold.NewTagged(db, "cache")
	below.Free(freehold.Must(below.Alloc(50, 8)))
	freehold.Must(db.Alloc(7, 8))
	process := budget.NewAccount(nil, &budget.AccountOptions{Name: t.Name(), Decay: -1})
	defer process.Close()
	a := budget.NewAccount(process, &budget.AccountOptions{Name: "search", MaxBytes: 8 << 20, Decay: -1})
	freehold.Must(a.Alloc(5<<20, 1))
	sessions := cache.New(h, &cache.Options{Name: "sessions", MaxBytes: 1 << 20})
	defer sessions.Close()
	for i := range 300 {
		if err := sessions.Set(fmt.Append(nil, i), make([]byte, 10_000)); err != nil {
			t.Fatal(err)
		}
	}
	sessions.Resize(cache.MinBytes)
	reader, registration := register(t)
	if points := collect(t, reader, ""); len(points) > 0 {
		t.Errorf("%v of no budget", points)
	}
	b, err := budget.Start(&budget.Options{Limit: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	all := collect(t, reader, "heap")
	wantFigures(t, all, "heap", metrics.HeapFigures, h.Stats())
	for _, tag := range []*freehold.Tagged{db, below} {
		points := collect(t, reader, tag.Tag())
		wantFigures(t, points, "tag", metrics.TagFigures, freehold.TagStats{Counts: tag.Counts()})
		maps.Copy(all, points)
	}
	for _, a := range []*budget.Account{process, a} {
		points := collect(t, reader, a.Name())
		wantFigures(t, points, "account", metrics.AccountFigures, a.Stats())
		maps.Copy(all, points)
	}
	points := collect(t, reader, "sessions")
	if st := sessions.Stats(); st.Evicted == 0 || st.Shrunk == 0 || st.Evicted == st.Shrunk {
		t.Errorf("%+v", st)
	}
	wantFigures(t, points, "cache", metrics.CacheFigures, sessions.Stats())
	maps.Copy(all, points)
	maps.Copy(all, collect(t, reader, ""))
	if p := all["freehold.budget.limit/"]; p.value != 1<<30 {
		t.Errorf("%+v", p)
	}

	source, err := os.ReadFile("register.go")
	if err != nil {
		t.Fatal(err)
	}
	var named, observed []string
	for _, line := range regexp.MustCompile(`(?m)^//\t(freehold(?:\.[a-z_]+)+) +(By|\{[a-z]+\})`).FindAllStringSubmatch(string(source), -1) {
		named = append(named, line[1]+" "+line[2])
	}
	for name, p := range all {
		observed = append(observed, strings.Split(name, "/")[0]+" "+p.unit)
	}
	slices.Sort(observed)
	observed = slices.Compact(observed)
	slices.Sort(named)
	if !slices.Equal(observed, named) {
		t.Errorf("observed are %q, and the documentation names %q", observed, named)
	}
	if err := registration.Unregister(); err != nil {
		t.Fatal(err)
	}
	if points := collect(t, reader, "heap"); len(points) != 0 {
		t.Errorf("after Unregister: %v", points)
	}
}

var errMeter = errors.New("no instruments")

// A broken meter fails to create one kind of instrument, or refuses the callback.
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
