package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/cache"
	"github.com/freehold-go/freehold/track"
	"github.com/freehold-go/freehold/track/web"
)

var update = flag.Bool("update", false, "write docs/page.png")

// A tab is a page in a browser, with its requests and error messages.
type tab struct {
	context.Context
	t  *testing.T
	mu sync.Mutex

	requests, complaints []string
}

// open shows an address in a new browser. Without a browser it skips the test.
func open(t *testing.T, address string, width int) *tab {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless_shell"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no browser is installed: chromium or google-chrome")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WindowSize(width, 860),
		chromedp.Flag("disable-component-update", true), chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(time.Minute))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	p := &tab{t: t}
	p.Context, cancel = chromedp.NewContext(ctx, chromedp.WithListener(p.listen))
	t.Cleanup(cancel)
	p.do(chromedp.EmulateViewport(int64(width), 860))
	_, err := chromedp.Call(p, network.Enable, network.EnableParams{})
	_, err2 := chromedp.Call(p, log.Enable, cdp.Empty{})
	_, err3 := chromedp.Call(p, runtime.Enable, cdp.Empty{})
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	p.do(chromedp.Navigate(address))
	return p
}

func (p *tab) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, e.Request.URL)
	case *runtime.EventExceptionThrown:
		p.complaints = append(p.complaints, e.ExceptionDetails.Text)
	case *log.EventEntryAdded: // a violated policy, or a missing file
		p.complaints = append(p.complaints, e.Entry.Text+" "+e.Entry.URL)
	}
}

func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// wait waits until a JavaScript expression is true.
func (p *tab) wait(expression string) {
	p.t.Helper()
	if _, err := chromedp.Run(p, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(time.Minute), chromedp.WithPollingInterval(50*time.Millisecond))); err != nil {
		text, _ := chromedp.Run(p, chromedp.Evaluate[string]("document.body.innerText"))
		p.t.Fatalf("%s: %v\n%s", expression, err, text)
	}
}

// value returns the value of a JavaScript expression.
func value[T any](p *tab, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p, chromedp.Evaluate[T](expression))
	if err != nil {
		p.t.Fatal(err)
	}
	return v
}

// seen fails the test if there were requests to other hosts, or error messages.
func (p *tab) seen(host string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.requests {
		if u, err := url.Parse(r); err != nil || u.Scheme != "data" && u.Host != host {
			p.t.Errorf("a request for %s", r)
		}
	}
	if len(p.requests) < 3 {
		p.t.Errorf("%d requests: %q", len(p.requests), p.requests)
	}
	for _, c := range p.complaints {
		p.t.Errorf("the browser complains: %s", c)
	}
}

const points = "Number(document.querySelector('#chart svg').dataset.points)"

// The page draws the heaps, follows them, and sends requests only to its process.
func TestThePageFollowsTheProcess(t *testing.T) {
	const evil = `<img src="http://example.com/x"><script>document.title = "evil"</script>`
	h := freehold.NewHeap(&freehold.HeapOptions{Name: evil, MaxBytes: 64 << 20})
	defer h.Close()
	freehold.Must(h.Alloc(2<<20, 8))
	s := httptest.NewServer(handler())
	defer s.Close()
	p := open(t, s.URL+"/debug/freehold", 1100)
	p.wait(points + " >= 3")
	if got := value[string](p, "document.title"); !strings.HasPrefix(got, "Off-heap memory of ") {
		t.Errorf("title %q", got)
	}

	// A name is shown as text, and its heap can be chosen.
	button := fmt.Sprintf("[...document.querySelectorAll('#heap-table button')].find(b => b.textContent === %q)", evil)
	p.do(chromedp.Evaluate[chromedp.Void](button+".focus()"), chromedp.Evaluate[chromedp.Void](button+".click()"))
	if got, want := value[string](p, "document.getElementById('classes').textContent"), "Block sizes of "+evil; got != want {
		t.Errorf("chosen: %q, want %q", got, want)
	}
	label := "document.querySelector('#chart svg').getAttribute('aria-label')"
	if got := value[string](p, label); !strings.Contains(got, "2.00 MiB live") {
		t.Errorf("chart: %q", got)
	}

	// Changes appear in the chart, the table and the block sizes, and the focus stays.
	freehold.Must(h.Alloc(1000, 8))
	freehold.Must(h.Alloc(3<<20, 8))
	p.wait(label + ".includes('5.00 MiB live')")
	p.wait(button + ".closest('tr').textContent.includes('5.00 MiB')")
	if !value[bool](p, "document.getElementById('class-table').textContent.includes('1,024 B')") {
		t.Error("no row of the block's size")
	}
	if !value[bool](p, button+" === document.activeElement") {
		t.Error("the focus is lost")
	}
	before := value[int](p, points)
	p.wait(fmt.Sprintf("%s > %d", points, before))

	// A paused page does not change.
	p.do(chromedp.Click(chromedp.CSS("#pause")))
	p.wait("document.getElementById('pause').textContent === 'Go on'")
	p.seen(strings.TrimPrefix(s.URL, "http://"))

	// When the process has ended, the page says so and keeps the last figures.
	p.do(chromedp.Click(chromedp.CSS("#pause")))
	s.CloseClientConnections()
	s.Config.Close()
	p.wait("document.getElementById('status').textContent.startsWith('The process does not answer')")
	if got := value[string](p, label); !strings.Contains(got, "5.00 MiB live") {
		t.Errorf("chart after the end: %q", got)
	}
}

// The budget and accounts appear on the page, the chart included, once there are any.
func TestThePageShowsTheBudget(t *testing.T) {
	s := httptest.NewServer(handler())
	defer s.Close()
	p := open(t, s.URL+"/debug/freehold", 1100)
	p.wait(points + " >= 2")
	const hidden = "document.getElementById('budget-section').hidden && document.getElementById('account-section').hidden"
	if !value[bool](p, hidden) {
		t.Error("there is none")
	}
	b, err := budget.Start(&budget.Options{Limit: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	process := b.Account()
	defer process.Close()
	tenant := budget.NewAccount(process, &budget.AccountOptions{Name: "<b>tenant", MaxBytes: 8 << 20})
	freehold.Must(tenant.Alloc(7<<20, 8))
	p.wait("document.getElementById('budget-table').textContent.includes('1.00 GiB')")
	p.wait("document.getElementById('account-table').textContent.includes('process/<b>tenant7.')")
	p.wait("document.querySelector('#account-table tr:last-child .strong')?.textContent === 'soft'")
	if got := value[string](p, "document.getElementById('budget-note').textContent"); !strings.HasPrefix(got, "The limit is from Options.Limit.") {
		t.Errorf("note %q", got)
	}
	p.do(chromedp.Evaluate[chromedp.Void](`choose("\u0000")`))
	if got := value[string](p, "document.querySelector('#chart svg').getAttribute('aria-label')"); !strings.HasPrefix(got, "memory budget: ") || !strings.Contains(got, " off-heap, ") {
		t.Errorf("chart %q", got)
	}
	if got := value[string](p, "document.getElementById('which').selectedOptions[0].textContent"); got != "memory budget" {
		t.Errorf("chosen %q", got)
	}
	b.Stop()
	p.wait("document.getElementById('budget-section').hidden && document.getElementById('which').selectedOptions[0].textContent === 'all heaps'")
	p.seen(strings.TrimPrefix(s.URL, "http://"))
}

// Caches appear on the page, with their rates, once there are any.
func TestThePageShowsCaches(t *testing.T) {
	s := httptest.NewServer(handler())
	defer s.Close()
	p := open(t, s.URL+"/debug/freehold", 1100)
	p.wait(points + " >= 2")
	if !value[bool](p, "document.getElementById('cache-section').hidden") {
		t.Error("there is none")
	}
	c := cache.New(freehold.Default(), &cache.Options{Name: "<b>sessions", MaxBytes: 1 << 20})
	const line = "document.querySelector('#cache-table tbody tr')?.textContent"
	p.wait(line + "?.startsWith('<b>sessions00 B1.00 MiB (')")
	p.wait(line + "?.includes(')–00')") // no reads, so the rates are 0
	if err := c.Set([]byte("k"), []byte("v")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c.Get(nil, []byte("k"))
	}
	c.Get(nil, []byte("l"))
	p.wait(line + "?.includes(')75.0%')")
	p.wait("document.querySelector('#cache-table .spark path')?.getAttribute('d').includes(' 5.5')") // of 1 to 19
	c.Close()
	p.wait("document.getElementById('cache-section').hidden")
	p.seen(strings.TrimPrefix(s.URL, "http://"))
}

//go:noinline
func lookup(a freehold.Allocator) { freehold.Must(a.Alloc(2<<20, 8)) }

//go:noinline
func insert(a freehold.Allocator) { freehold.Must(a.Alloc(2<<20, 8)) }

//go:noinline
func request(a freehold.Allocator) {
	lookup(a)
	lookup(a) // from another line
	insert(a)
}

// The page fits screens of any width, without cutting a table. Rows of stacks differ, and a full
// cache is not red.
func TestThePageFits(t *testing.T) {
	defer track.SetSampleRate(track.SetSampleRate(1))
	b, err := budget.Start(&budget.Options{Limit: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	process := b.Account()
	defer process.Close()
	full := budget.NewAccount(process, &budget.AccountOptions{Name: "a-rather-long-name", Soft: 4 << 20, MaxBytes: 8 << 20})
	h := freehold.NewHeap(&freehold.HeapOptions{Name: "sessions of tenants", MaxBytes: 16 << 20})
	defer h.Close()
	request(freehold.NewTagged(h, "tag"))
	c := cache.New(freehold.Default(), &cache.Options{Name: "a-rather-long-name of a cache", MaxBytes: 1 << 20})
	defer c.Close()
	for _, a := range []freehold.Allocator{full, h} {
		for err := error(nil); err == nil; {
			_, err = a.Alloc(100_000, 8)
		}
	}
	s := httptest.NewServer(web.Handler())
	defer s.Close()
	p := open(t, s.URL, 1280)
	p.wait(points + " >= 3")
	for _, width := range []int{1280, 1201, 1200, 800, 400, 320} {
		p.do(chromedp.EmulateViewport(int64(width), 860))
		p.wait(fmt.Sprintf("innerWidth === %d", width))
		if got := value[int](p, "document.documentElement.scrollWidth"); got > width {
			t.Errorf("the page is %d wide, want %d", got, width)
		}
		if got := value[string](p, "[...document.querySelectorAll('.wide')].filter(e => e.scrollWidth > e.clientWidth).map(e => e.firstChild.id + ' is ' + e.scrollWidth + ' wide of ' + e.clientWidth).join()"); got != "" {
			t.Errorf("at %d: %s", width, got)
		}
	}
	if got := value[string](p, "[...document.querySelectorAll('.bad')].map(e => e.closest('tr').textContent).join()"); got != "" {
		t.Errorf("red: %s", got)
	}
	rows := strings.Split(value[string](p, "[...document.querySelectorAll('summary')].map(e => e.textContent).join('\\n')"), "\n")
	mine := map[string]bool{}
	for _, row := range rows {
		if strings.Contains(row, " of sessions of tenants, tag tag: ") {
			mine[row] = true
		}
	}
	if got := value[string](p, "document.getElementById('stack-note').textContent"); len(mine) != 3 || got != "Every block is counted." {
		t.Errorf("%d rows differ, want 3: %q, %q", len(mine), rows, got)
	}
}

// The picture in docs shows this example. -update writes it.
func TestPicture(t *testing.T) {
	if !*update {
		t.Skip("writes docs/page.png with -update")
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := run(ctx); err != nil {
			t.Error(err)
		}
	}()
	defer func() { stop(); <-done }()
	s := httptest.NewServer(handler())
	defer s.Close()
	for name, width := range map[string]int{"page.png": 1280, "narrow.png": 400} {
		for _, scheme := range []string{"light", "dark"} {
			p := open(t, s.URL+"/debug/freehold", width)
			features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}
			if _, err := chromedp.Call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
				t.Fatal(err)
			}
			p.wait(points + " >= 25")
			p.do(chromedp.EmulateViewport(int64(width), 1325)) // as high as the table of accounts needs
			png, err := chromedp.Run(p, chromedp.CaptureScreenshot())
			if err != nil {
				t.Fatal(err)
			}
			path := "../../docs/page.png"
			if name != "page.png" || scheme != "light" {
				path = os.TempDir() + "/" + scheme + "-" + name
			}
			if err := os.WriteFile(path, png, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
}
