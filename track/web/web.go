// Web: the page at /debug/freehold.
//
// The page's script draws the page from snapshots in JSON. The server keeps no history and
// starts no timer, so a page without a viewer costs nothing. The fast paths of Alloc and Free
// keep no counters: the page shows rates of slow calls for heaps, and rates of all calls for
// Tagged allocators. Fragmentation is 1 - live / bytes of pages in use. Free pages do not count,
// since the heap returns them by itself. Names are set as text, and a Content-Security-Policy
// allows no other script than the page's.

// Package web serves a page about the off-heap memory of a running process:
//
//	http.Handle("/debug/freehold", web.Handler())
//
// The page shows the live and resident bytes of each heap and tag, their fragmentation and
// limits, rates per second, block sizes, the memory budget, accounts and caches. A chart covers
// the last ten minutes for which the page was open. It loads nothing from other hosts and
// changes nothing.
//
//	curl http://localhost:6060/debug/freehold               # the same as text
//	curl http://localhost:6060/debug/freehold?format=json   # a Snapshot
//	curl http://localhost:6060/debug/freehold?view=leaks    # live blocks by stack, as text
//	freehold stats http://localhost:6060/debug/freehold     # live, in a terminal
//
// The program must mount the handler itself. The page has no password. It reveals names of heaps
// and functions, sizes and loads, so serve it on an address that only operators reach, as with
// net/http/pprof.
package web

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"net/http"
	"strings"

	"github.com/freehold-go/freehold/track"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed page.js
	pageJS string

	pageTemplate = template.Must(template.New("page").Parse(pageHTML))

	// policy allows the page its own script and style and requests to its own host, nothing
	// else.
	policy = "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" +
		"; script-src '" + hashOf(pageJS) + "'; style-src '" + hashOf(pageCSS) + "'"
)

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// A Link is an entry in the page's list of links.
type Link struct {
	Text string // such as "off-heap profile"
	URL  string // such as "/debug/pprof/offheap"
}

// page is the data of the template.
type page struct {
	Snapshot *Snapshot
	Links    []Link
	CSS      template.CSS
	JS       template.JS
	Text     string
}

// Handler returns the page's handler. The page shows the given links. The handler answers GET
// and HEAD. The parameter format, or else the header Accept, chooses html, json (a [Snapshot])
// or text, the default. With view=leaks the answer is the text of track.WriteLeaks: live blocks,
// exact at sample rate 1 and estimated otherwise, and owners that were dropped without Close.
//
// An answer calls Stats of each heap, account and cache and runtime/metrics, which takes tens of
// microseconds, and track.Profile if blocks are sampled. The handler keeps nothing between
// requests.
func Handler(links ...Link) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "this page is read-only: GET or HEAD", http.StatusMethodNotAllowed)
			return
		}
		if r.URL.Query().Has("view") {
			serveView(w, r.URL.Query().Get("view"))
			return
		}
		var body bytes.Buffer
		var kind string
		var err error
		switch s := Take(); formatOf(r) {
		case "html":
			kind = "text/html; charset=utf-8"
			w.Header().Set("Content-Security-Policy", policy)
			err = pageTemplate.Execute(&body, page{s, links, template.CSS(pageCSS), template.JS(pageJS), s.Text(nil, 0)})
		case "json":
			kind = "application/json"
			err = json.NewEncoder(&body).Encode(s)
		case "text":
			kind = "text/plain; charset=utf-8"
			body.WriteString(s.Text(nil, 0))
		default:
			http.Error(w, "format: want html, json or text", http.StatusBadRequest)
			return
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Vary", "Accept")
		write(w, kind, body.Bytes())
	})
}

// serveView serves a view other than the page.
func serveView(w http.ResponseWriter, view string) {
	if view != "leaks" {
		http.Error(w, "view: want leaks", http.StatusBadRequest)
		return
	}
	var body bytes.Buffer
	_ = track.WriteLeaks(&body) // a buffer returns no errors
	write(w, "text/plain; charset=utf-8", body.Bytes())
}

func write(w http.ResponseWriter, kind string, body []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(body) // an error means that the client has gone
}

// formatOf returns the format that a request asks for.
func formatOf(r *http.Request) string {
	if r.URL.Query().Has("format") {
		return r.URL.Query().Get("format")
	}
	switch accept := r.Header.Get("Accept"); {
	case strings.Contains(accept, "text/html"):
		return "html"
	case strings.Contains(accept, "application/json"):
		return "json"
	}
	return "text"
}
