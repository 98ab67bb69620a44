package web_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/cache"
	"github.com/freehold-go/freehold/internal/vm"
	"github.com/freehold-go/freehold/pool"
	"github.com/freehold-go/freehold/track"
	"github.com/freehold-go/freehold/track/web"
)

func ExampleHandler() {
	mux := http.NewServeMux()
	mux.Handle("/debug/freehold", web.Handler(web.Link{Text: "off-heap profile", URL: "/debug/pprof/offheap"}))
	// On an address that only operators reach:
	//	http.ListenAndServe("localhost:6060", mux)
}

func newHeap(t *testing.T, name string, maxBytes int, sizes ...int) *freehold.Heap {
	h := freehold.NewHeap(&freehold.HeapOptions{Name: name, MaxBytes: maxBytes, Decay: -1}) // no tick changes a figure
	t.Cleanup(h.Close)
	for _, size := range sizes {
		freehold.Must(h.Alloc(size, 8))
	}
	return h
}

// get requests the page.
func get(method, target, accept string, links ...web.Link) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	w := httptest.NewRecorder()
	web.Handler(links...).ServeHTTP(w, r)
	return w
}

const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

func TestFormats(t *testing.T) {
	const html, text, js = "text/html; charset=utf-8", "text/plain; charset=utf-8", "application/json"
	tests := []struct {
		query, accept, want string
	}{
		{"", browser, html},
		{"", "*/*", text}, // curl
		{"", "", text},
		{"", "application/json", js},
		{"?format=text", browser, text},
		{"?format=json", browser, js},
		{"?format=html", "*/*", html},
	}
	for _, tt := range tests {
		w := get("GET", "/debug/freehold"+tt.query, tt.accept)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != tt.want {
			t.Errorf("%q, %q: status %d, %s, want %s", tt.query, tt.accept, w.Code, w.Header().Get("Content-Type"), tt.want)
		}
		if w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Vary") != "Accept" {
			t.Errorf("%q, %q: header %v", tt.query, tt.accept, w.Header())
		}
	}
	for _, query := range []string{"?format=xml", "?format="} {
		if w := get("GET", "/"+query, ""); w.Code != http.StatusBadRequest || w.Body.String() != "format: want html, json or text\n" {
			t.Errorf("%s: status %d, %s", query, w.Code, w.Body)
		}
	}
}

func TestThePageIsReadOnly(t *testing.T) {
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS"} {
		w := get(method, "/", browser)
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: status %d, header %v", method, w.Code, w.Header())
		}
	}
	s := httptest.NewServer(web.Handler())
	defer s.Close()
	answer, err := http.Head(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); answer.StatusCode != http.StatusOK || len(body) != 0 || err != nil {
		t.Errorf("HEAD: status %d, %d bytes, %v", answer.StatusCode, len(body), err)
	}
}

// Names are escaped everywhere, whatever they contain.
func TestNamesAreEscaped(t *testing.T) {
	const evil = `<script>alert("x")</script>` + "\x1b[31m"
	newHeap(t, evil, 0, 64)
	html := get("GET", "/", browser, web.Link{Text: "<b>", URL: `javascript:alert(1)"`}).Body.String()
	if n := strings.Count(html, "<script"); n != 2 {
		t.Errorf("%d scripts, want 2", n)
	}
	for _, bad := range []string{"<b>", `"javascript:`, "\x1b"} {
		if strings.Contains(html, bad) {
			t.Errorf("%q is on the page", bad)
		}
	}
	if text := get("GET", "/", "").Body.String(); !strings.Contains(text, `"<script>alert(\"x\")</script>\x1b[31m"  64 B`) || strings.Contains(text, "\x1b") {
		t.Errorf("text: %s", text)
	}
}

// The page is self-contained: it loads nothing from its own server or others.
func TestThePageIsComplete(t *testing.T) {
	html := get("GET", "/", browser, web.Link{Text: "off-heap profile", URL: "/debug/pprof/offheap"}).Body.String()
	for _, found := range regexp.MustCompile(`(?i)(src|href)="([^"]*)"|url\(|@import|import\(|https?://[^"]*`).FindAllString(html, -1) {
		switch found {
		case `href="data:,"`, `href="?format=text"`, `href="?format=json"`, `href="?view=leaks"`, `href="/debug/pprof/offheap"`, `http://www.w3.org/2000/svg`:
		default:
			t.Errorf("the page refers to %s", found)
		}
	}
	if !strings.Contains(html, `<a href="/debug/pprof/offheap">off-heap profile</a>`) {
		t.Error("no link to the profile")
	}
}

func TestJSONIsASnapshot(t *testing.T) {
	h := newHeap(t, t.Name(), 8<<20, 64, 4096, 100_000)
	var s web.Snapshot
	if err := json.Unmarshal(get("GET", "/?format=json", "").Body.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	if got, found := s.Heap(t.Name()); !found || !reflect.DeepEqual(got, h.Stats()) {
		t.Errorf("%+v, want %+v", got, h.Stats())
	}
	if _, found := s.Heap(t.Name() + "x"); found {
		t.Error("a heap that does not exist")
	}
	if s.Format != web.Format || s.PID != os.Getpid() || s.Go == "" || s.GoMemory < 1<<20 || s.Time.Before(s.Started) {
		t.Errorf("%+v", s)
	}
	if _, err := os.Stat("/proc/self/statm"); err == nil && s.Resident < 1<<20 {
		t.Errorf("%d bytes resident", s.Resident)
	}
}

//go:noinline
func culprit(h *freehold.Heap) []byte { return freehold.Must(h.Alloc(3<<20, 8)) }

// The page shows stacks if blocks are sampled, and none otherwise.
func TestStacksAreThoseOfSampledBlocks(t *testing.T) {
	was := track.SetSampleRate(0)
	t.Cleanup(func() { track.SetSampleRate(was) })
	if s := web.Take(); s.SampleRate != 0 || len(s.Stacks) != 0 {
		t.Errorf("rate %d, %d stacks, want none", s.SampleRate, len(s.Stacks))
	}
	track.SetSampleRate(1)
	h := newHeap(t, t.Name(), 0)
	b := culprit(h)
	s := web.Take()
	var found *web.Stack
	for i := range s.Stacks {
		if s.Stacks[i].Heap == t.Name() {
			found = &s.Stacks[i]
		}
	}
	if found == nil || found.Bytes != 3<<20 || found.Blocks != 1 {
		t.Fatalf("stacks %+v", s.Stacks)
	}
	if c := found.Callers[0]; !strings.HasSuffix(c.Function, "web_test.culprit") || c.File != "web/web_test.go" || c.Line == 0 {
		t.Errorf("caller %+v", c)
	}
	text := s.Text(nil, 0)
	for _, want := range []string{"\nIn use by call stack\n", "3.00 MiB in 1 block of " + t.Name(), "web_test.culprit  web/web_test.go:"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	h.Free(b)
	for _, st := range web.Take().Stacks {
		if st.Heap == t.Name() {
			t.Errorf("all is free, and there is %+v", st)
		}
	}
}

// Stacks that look the same share a row. Stacks with different tags do not.
func TestStacksAreTold(t *testing.T) {
	was := track.SetSampleRate(1)
	t.Cleanup(func() { track.SetSampleRate(was) })
	h := newHeap(t, t.Name(), 0)
	var twice [2][]byte
	for _, tag := range []string{"a", "b"} {
		tagged := freehold.NewTagged(h, tag)
		twice[0], twice[1] = freehold.Must(tagged.Alloc(3<<20, 8)), freehold.Must(tagged.Alloc(3<<20, 8)) // both on one line
	}
	s := web.Take()
	rows := map[string]int64{}
	for _, st := range s.Stacks {
		if st.Heap == t.Name() {
			rows[st.Tag] += st.Blocks
			rows[""]++
		}
	}
	if want := map[string]int64{"": 2, "a": 2, "b": 2}; !reflect.DeepEqual(rows, want) {
		t.Errorf("rows %v, want %v: %+v", rows, want, s.Stacks)
	}
	if text := s.Text(nil, 0); !strings.Contains(text, "\n6.00 MiB in 2 blocks of "+t.Name()+", tag b\n") {
		t.Errorf("no tag in %s", text)
	}
	s.SampleRate = 512 << 10
	if text := s.Text(nil, 0); !strings.Contains(text, "\nIn use by call stack, estimated from one in 524,288 bytes\n") {
		t.Errorf("no rate in %s", text)
	}
}

//go:noinline
func pooled(h *freehold.Heap) *pool.Pool[[4 << 20]byte] {
	p := pool.New[[4 << 20]byte](h, nil)
	freehold.Must(p.Get())
	return p
}

// A stack begins with the caller of this module, whichever package was called.
func TestStacksOfPoolsBeginWithTheirCaller(t *testing.T) {
	was := track.SetSampleRate(1)
	t.Cleanup(func() { track.SetSampleRate(was) })
	p := pooled(newHeap(t, t.Name(), 0))
	defer p.Close()
	s := web.Take()
	for _, st := range s.Stacks {
		if st.Heap == t.Name() && st.Bytes > 1<<20 {
			if !strings.HasSuffix(st.Callers[0].Function, "web_test.pooled") || st.Through != "pool.(*Pool[...]).Get" {
				t.Errorf("%+v", st)
			}
			if want := t.Name() + " through pool.(*Pool[...]).Get\n    github.com/freehold-go/freehold/track/web_test.pooled"; !strings.Contains(s.Text(nil, 0), want) {
				t.Errorf("no %q in %s", want, s.Text(nil, 0))
			}
			return
		}
	}
	t.Errorf("no stack: %+v", s.Stacks)
}

// The view of leaks is text for browsers too. It says whether the figures are exact.
func TestViewOfLeaks(t *testing.T) {
	was := track.SetSampleRate(1)
	t.Cleanup(func() { track.SetSampleRate(was) })
	h := newHeap(t, t.Name(), 0)
	h.Free(culprit(h))
	culprit(h)
	for _, target := range []string{"/?view=leaks", "/?view=leaks&format=html"} {
		w := get("GET", target, browser)
		text := w.Body.String()
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/plain; charset=utf-8" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: status %d, %v", target, w.Code, w.Header())
		}
		if want := fmt.Sprintf("1 block, 3145728 bytes of heap %q, allocated at:\n", t.Name()); !strings.Contains(text, want) || !strings.Contains(text, "web_test.culprit") || strings.Contains(text, "estimated") {
			t.Errorf("%s: no %q in %s", target, want, text)
		}
	}
	track.SetSampleRate(1000)
	if text := get("GET", "/?view=leaks", "").Body.String(); !strings.Contains(text, "estimated from one in 1000 bytes") {
		t.Errorf("at rate 1000: %s", text)
	}
	for _, view := range []string{"", "stacks"} {
		if w := get("GET", "/?view="+view, ""); w.Code != http.StatusBadRequest || w.Body.String() != "view: want leaks\n" {
			t.Errorf("view %q: status %d, %s", view, w.Code, w.Body)
		}
	}
}

func TestTagsAreShown(t *testing.T) {
	tagged := freehold.NewTagged(freehold.NewTagged(newHeap(t, t.Name(), 0), "web"), "cache")
	freehold.Must(tagged.Alloc(100, 8))
	s := web.Take()
	if i := slices.IndexFunc(s.Tags, func(t freehold.TagStats) bool { return t.Tag == "web/cache" }); i < 1 || s.Tags[i].Counts != tagged.Counts() || s.Tags[i-1].Tag != "web" {
		t.Errorf("%+v, want %+v", s.Tags, tagged.Counts())
	}
}

// A snapshot has the open caches, and an empty list if there are none.
func TestCachesAreShown(t *testing.T) {
	if s := web.Take(); len(s.Caches) != 0 {
		t.Fatalf("there are none: %+v", s.Caches)
	}
	c := cache.New(newHeap(t, t.Name(), 0), &cache.Options{Name: t.Name(), MaxBytes: 1 << 20})
	defer c.Close()
	if err := c.Set([]byte("k"), []byte("v")); err != nil {
		t.Fatal(err)
	}
	c.Get(nil, []byte("k"))
	var s web.Snapshot
	if err := json.Unmarshal(get("GET", "/?format=json", "").Body.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	if want := []cache.Stats{c.Stats()}; !slices.Equal(s.Caches, want) || want[0].Hits != 1 {
		t.Errorf("%+v, want %+v", s.Caches, want)
	}
}

// A snapshot has the running budget and all accounts, and nothing if there are none.
func TestBudgetAndAccountsAreShown(t *testing.T) {
	if s := web.Take(); s.Budget != nil || len(s.Accounts) != 0 || strings.Contains(s.Text(nil, 0), "\nbudget ") {
		t.Fatalf("there are none: %+v", s)
	}
	b, err := budget.Start(&budget.Options{Limit: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	process := b.Account()
	defer process.Close()
	one := budget.NewAccount(process, &budget.AccountOptions{Name: "a b", MaxBytes: 8 << 20})
	budget.NewAccount(process, &budget.AccountOptions{Name: "a"})
	budget.NewAccount(one, &budget.AccountOptions{Name: "c"})
	freehold.Must(one.Alloc(1<<20, 8))
	body := get("GET", "/?format=json", "").Body.Bytes()
	var s web.Snapshot
	if err := json.Unmarshal(body, &s); err != nil {
		t.Fatal(err)
	}
	if s.Budget == nil || s.Budget.Limit != 1<<30 || s.Budget.Source != "Options.Limit" || s.Budget.OffHeap < 1<<20 && !vm.GoBacked {
		t.Errorf("budget %+v", s.Budget)
	}
	var names []string
	for _, st := range s.Accounts {
		names = append(names, st.Name)
	}
	if want := []string{"process", "process/a", "process/a b", "process/a b/c"}; !slices.Equal(names, want) {
		t.Fatalf("accounts %q, want %q", names, want)
	}
	if st := s.Accounts[2]; st.MaxBytes != 8<<20 || st.LiveBytes != 1<<20 || st.Used < 1<<20 {
		t.Errorf("%+v", st)
	}

	// A client that predates the new fields reads the rest.
	var old struct {
		Format string
		Heaps  []freehold.Stats
	}
	if err := json.Unmarshal(body, &old); err != nil || old.Format != "freehold/1" || len(old.Heaps) != len(s.Heaps) {
		t.Errorf("%v, %+v", err, old)
	}
}

func TestFragmentation(t *testing.T) {
	for _, tt := range []struct {
		live, active int
		want         float64
	}{
		{0, 0, 0},
		{100, 100, 0},
		{101, 100, 0}, // calls in progress
		{25, 100, 0.75},
		{0, 100, 1},
	} {
		if got := web.Fragmentation(freehold.Stats{LiveBytes: tt.live, Active: tt.active}); got != tt.want {
			t.Errorf("%d of %d: %v, want %v", tt.live, tt.active, got, tt.want)
		}
	}
}

// The page's data, for a log line or a test.
func ExampleTake() {
	heap := freehold.NewHeap(&freehold.HeapOptions{Name: "an index"})
	defer heap.Close()
	freehold.Must(heap.Alloc(3<<20, 8))

	s := web.Take()
	st, _ := s.Heap("an index")
	fmt.Println(web.Size(st.LiveBytes), "in", st.Live, "block; all heaps have no less:", s.Total().LiveBytes >= st.LiveBytes)
	// Output: 3.00 MiB in 1 block; all heaps have no less: true
}
