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

func TestEveryFigureIsPublished(t *testing.T) {
	h := freehold.NewHeap(&freehold.HeapOptions{Name: `a "name" </script>`, MaxBytes: 8 << 20})
	defer h.Close()
	freehold.Must(h.Alloc(100, 8))
	w := httptest.NewRecorder()
	expvar.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/debug/vars", nil))
	var vars struct{ Freehold map[string]freehold.Stats }
	if err := json.Unmarshal(w.Body.Bytes(), &vars); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	if got, want := vars.Freehold[h.Stats().Name], h.Stats(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if _, found := vars.Freehold["default"]; !found {
		t.Error("no default heap")
	}
}

func TestTagsArePublished(t *testing.T) {
	h := freehold.NewHeap(nil)
	defer h.Close()
	tag := freehold.NewTagged(freehold.NewTagged(h, "vars"), "cache")
	freehold.Must(tag.Alloc(100, 8))
	var tags map[string]freehold.Counts
	if err := json.Unmarshal([]byte(expvar.Get("freehold.tags").String()), &tags); err != nil {
		t.Fatal(err)
	}
	if got, want := tags["vars/cache"], tag.Counts(); got != want || got.LiveBytes == 0 {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got, want := tags["vars"], tags["vars/cache"]; got != want {
		t.Errorf("the tag above has %+v, want %+v", got, want)
	}
}

func TestBudgetIsPublished(t *testing.T) {
	if got := expvar.Get("freehold.budget").String(); got != "null" {
		t.Errorf("no budget is %s", got)
	}
	b, err := budget.Start(&budget.Options{Limit: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	var st budget.Stats
	if err := json.Unmarshal([]byte(expvar.Get("freehold.budget").String()), &st); err != nil {
		t.Fatal(err)
	}
	if st.Limit != 1<<30 || st.Source != "Options.Limit" || st.GoHeld == 0 {
		t.Errorf("%+v", st)
	}
}

func TestAccountsArePublished(t *testing.T) {
	a := budget.NewAccount(nil, &budget.AccountOptions{Name: t.Name(), MaxBytes: 8 << 20})
	defer a.Close()
	freehold.Must(a.Alloc(100, 1))
	var accounts map[string]budget.AccountStats
	if err := json.Unmarshal([]byte(expvar.Get("freehold.accounts").String()), &accounts); err != nil {
		t.Fatal(err)
	}
	if got := accounts[t.Name()]; got != a.Stats() || got.Used == 0 {
		t.Errorf("%+v, want %+v", got, a.Stats())
	}
}
