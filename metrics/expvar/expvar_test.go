package expvar_test

import (
	"encoding/json"
	"expvar"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/cache"
	_ "github.com/freehold-go/freehold/metrics/expvar"
)

func Example() {
	http.Handle("/vars", expvar.Handler()) // on http.DefaultServeMux it is at /debug/vars

	heap := freehold.NewHeap(&freehold.HeapOptions{Name: "index"})
	defer heap.Close()
	b, err := heap.Alloc(64, 8)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer heap.Free(b)

	var vars map[string]freehold.Stats
	if err := json.Unmarshal([]byte(expvar.Get("freehold").String()), &vars); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(vars["index"].LiveBytes, "bytes live")
	// Output: 64 bytes live
}

// published returns the value of a variable as a client reads it.
func published[S any](t *testing.T, name string) (value S) {
	t.Helper()
	w := httptest.NewRecorder()
	expvar.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/debug/vars", nil))
	var all map[string]json.RawMessage
	if err := json.Unmarshal(w.Body.Bytes(), &all); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	if err := json.Unmarshal(all[name], &value); err != nil {
		t.Fatalf("%v in %s", err, all[name])
	}
	return value
}

func TestEveryFigureIsPublished(t *testing.T) {
	h := freehold.NewHeap(&freehold.HeapOptions{Name: `a "name" </script>`, MaxBytes: 8 << 20, Decay: -1}) // no tick changes a figure
	defer h.Close()
	tag := freehold.NewTagged(freehold.NewTagged(h, "vars"), "cache")
	freehold.Must(tag.Alloc(100, 8))
	a := budget.NewAccount(nil, &budget.AccountOptions{Name: t.Name(), MaxBytes: 8 << 20, Decay: -1})
	defer a.Close()
	freehold.Must(a.Alloc(100, 1))

	heaps := published[map[string]freehold.Stats](t, "freehold")
	if got, want := heaps[h.Stats().Name], h.Stats(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if _, found := heaps["default"]; !found {
		t.Error("no default heap")
	}
	tags := published[map[string]freehold.Counts](t, "freehold.tags")
	if want := tag.Counts(); tags["vars/cache"] != want || tags["vars"] != want || want.LiveBytes == 0 {
		t.Errorf("%+v, want %+v", tags, want)
	}
	if got := published[map[string]budget.AccountStats](t, "freehold.accounts")[t.Name()]; got != a.Stats() || got.Used == 0 {
		t.Errorf("%+v, want %+v", got, a.Stats())
	}
	c := cache.New(h, &cache.Options{Name: t.Name(), MaxBytes: cache.MinBytes})
	defer c.Close()
	c.Get(nil, []byte("k"))
	if got := published[map[string]cache.Stats](t, "freehold.caches")[t.Name()]; got != c.Stats() || got.Misses != 1 {
		t.Errorf("%+v, want %+v", got, c.Stats())
	}
}

func TestBudgetIsPublished(t *testing.T) {
	if got := published[*budget.Stats](t, "freehold.budget"); got != nil {
		t.Errorf("no budget is %+v", got)
	}
	b, err := budget.Start(&budget.Options{Limit: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	if st := published[budget.Stats](t, "freehold.budget"); st.Limit != 1<<30 || st.Source != "Options.Limit" || st.GoHeld == 0 {
		t.Errorf("%+v", st)
	}
}
