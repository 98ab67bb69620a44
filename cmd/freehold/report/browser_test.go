package report

import (
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// frames shows the page in a frame of each width. Once all are loaded, it writes into #found the
// elements that are wider than their frame, or have text but no size.
const frames = `<!doctype html><title>frames</title>
%s<pre id="found">not loaded</pre>
<script>
onload = () => {
  const found = []
  for (const frame of document.querySelectorAll("iframe")) {
    const page = frame.contentDocument, width = frame.clientWidth
    if (page.documentElement.scrollWidth > width) found.push(width + ": the page is " + page.documentElement.scrollWidth)
    for (const e of page.body.querySelectorAll("*")) {
      const box = e.getBoundingClientRect()
      if (box.right > width + 1 || box.left < -1 || e instanceof frame.contentWindow.HTMLElement && e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline")
        found.push(width + ": " + e.tagName + " " + e.className + " " + e.textContent.slice(0, 40))
    }
    const bars = [...page.querySelectorAll(".bars i")].map(e => e.getBoundingClientRect())
    if (bars.length === 0 || Math.min(...bars.map(b => b.width)) < 1 || Math.max(...bars.map(b => b.width)) < 20) found.push(width + ": no bars")
    if (bars.some(b => b.height > b.width && b.width > 20)) found.push(width + ": a bar is upright")
    if (page.querySelectorAll(".legend").length !== 1) found.push(width + ": not one legend")
    if (page.querySelector("section").className !== "summary") found.push(width + ": no summary on top")
    for (const e of page.querySelectorAll("svg text")) {
      if (e.getBoundingClientRect().height < 9) found.push(width + ": tiny text " + e.textContent)
    }
  }
  document.getElementById("found").textContent = "found:" + found.join("\n")
}
</script>`

// On a screen of 320 pixels and more the page is as wide as that, and nothing in it is cut.
func TestPageFitsScreens(t *testing.T) {
	many := Grid{Head: []string{"cycle", "resident at the peak", "resident after settle", "live then", "resident per live", "allocations a second", "took, s"}}
	for i := range 3 {
		many.Add(fmt.Sprint(i), "12.3 GiB", "1.23 GiB", "1.00 GiB", "1.230", "12,345,678", "123")
	}
	p := Page{
		Title: "a report of a rather long title", Lead: "What it is about.",
		Facts: []string{"freehold (devel) 0123456789ab+changes go1.26.8 linux/amd64; small blocks take the fast path"},
		Sections: []Section{{
			Title: "One", Why: strings.Repeat("It has a reason. ", 9), Results: []string{strings.Repeat("It takes 1.23 ms. ", 9)},
			Grids: []Grid{Columns("1,000,000 of them", shown{}, []Column{
				{"Go heap", "go", all[0]}, {"Go heap, in as much memory as that", "go", shown{Count: 24690, Size: 1 << 40}}, {"freehold", "freehold", "refused"},
			}), many},
			Charts: []Chart{{Title: "memory over time", Lines: []Line{{Name: "live", Color: "live", Fill: true, Points: []Point{{0, 1 << 30}, {70, 3 << 40}}}}}},
			Notes:  []string{"free Go memory: freehold: Free of 0x123456789abc, which is not memory of freehold"},
		}, {Title: "Two", Results: []string{"More."}}},
	}
	var page, frame bytes.Buffer
	if err := p.Write(&page); err != nil {
		t.Fatal(err)
	}
	for _, width := range []int{320, 400, 701, 1280} {
		fmt.Fprintf(&frame, `<iframe src="page" style="width: %dpx; height: 900px; border: 0"></iframe>`, width)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch r.URL.Path {
		case "/":
			fmt.Fprintf(w, frames, frame.Bytes())
		case "/page":
			w.Write(page.Bytes())
		}
	}))
	defer s.Close()
	_, found, _ := strings.Cut(browse(t, "--window-size=1400,900", "--dump-dom", s.URL), `<pre id="found">`)
	if found, _, _ = strings.Cut(found, "</pre>"); found != "found:" {
		t.Errorf("%s", found)
	}
}

// browse runs a browser, and skips the test where there is none.
func browse(t *testing.T, args ...string) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		args = append([]string{"--headless", "--disable-gpu", "--disable-component-update", "--virtual-time-budget=10000", "--user-data-dir=" + t.TempDir()}, args...)
		if os.Getuid() == 0 {
			args = append([]string{"--no-sandbox"}, args...)
		}
		out, err := exec.CommandContext(t.Context(), path, args...).Output()
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return string(out)
	}
	t.Skip("no browser is installed: chromium or google-chrome")
	return ""
}

var update = flag.Bool("update", false, "write docs/demo.png and docs/demo-dark.png")

// inPicture has the rows of the demo that README shows, and what they are called there.
var inPicture = [][2]string{
	{"collector, % of all processors&#39; time", "processors' time that the collector takes, %"},
	{"one collection while it is live, ms", "one collection of 2 million objects, ms"},
	{"after the fall, and a wait", "resident after live data fell from 512 to 32 MiB"},
}

// docs/demo.html is a page of this template, and docs/demo.png some of its rows: make demo-page.
func TestDemoInDocs(t *testing.T) {
	const docs = "../../../docs/"
	page, err := os.ReadFile(docs + "demo.html")
	if err != nil {
		t.Skip(err) // the sources are not here
	}
	style, _, _ := strings.Cut(pageText, "</style>")
	_, style, _ = strings.Cut(style, "<style>")
	if !strings.Contains(strings.ReplaceAll(string(page), "\r\n", "\n"), style) {
		t.Error("docs/demo.html is not of this page: make demo-page")
	}
	var picture strings.Builder
	for _, row := range inPicture {
		_, body, found := strings.Cut(string(page), `<th colspan="2">`+row[0]+"<")
		body, _, ended := strings.Cut(body, "</tbody>")
		if !found || !ended {
			t.Fatalf("docs/demo.html has no row %q: make demo-page", row[0])
		}
		fmt.Fprintf(&picture, `<tbody><tr><th colspan="2">%s<%s</tbody>`, row[1], body)
	}
	if !*update {
		return
	}
	absolute, err := filepath.Abs(docs)
	if err != nil {
		t.Fatal(err)
	}
	for name, scheme := range map[string]string{"demo.png": "light", "demo-dark.png": "dark"} {
		file := filepath.Join(t.TempDir(), "picture.html")
		html := fmt.Sprintf(`<style>%s body { padding: 0 20px; color-scheme: %s; }</style><table class="bars" style="margin: 0">%s</table>`, style, scheme, &picture)
		if err := os.WriteFile(file, []byte(html), 0o600); err != nil {
			t.Fatal(err)
		}
		browse(t, "--window-size=480,272", "--force-device-scale-factor=2", "--hide-scrollbars", "--screenshot="+filepath.Join(absolute, name), "file://"+file)
	}
}
