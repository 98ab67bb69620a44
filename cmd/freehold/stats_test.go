package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/track/web"
)

// servePage serves the page of this process.
func servePage(t *testing.T) *httptest.Server {
	mux := http.NewServeMux()
	mux.Handle("/debug/freehold", web.Handler())
	mux.HandleFunc("/words", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "words") })
	mux.HandleFunc("/json", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"Format": 1}`) })
	mux.HandleFunc("/later", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"Format": "freehold/99"}`) })
	mux.HandleFunc("/old", func(w http.ResponseWriter, r *http.Request) { // before budgets and accounts
		fmt.Fprint(w, `{"Format": "freehold/1", "Program": "shop", "PID": 7, "Heaps": [{"Name": "carts", "LiveBytes": 2048}], "Tags": null}`)
	})
	mux.HandleFunc("/cut", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, `{`)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func TestStatsPrintsOnce(t *testing.T) {
	s := servePage(t)
	h := freehold.NewHeap(&freehold.HeapOptions{Name: "shown by stats"})
	defer h.Close()
	freehold.Must(h.Alloc(3000, 8))
	host := strings.TrimPrefix(s.URL, "http://")
	for _, where := range []string{host, s.URL, s.URL + "/", s.URL + "/debug/freehold", s.URL + "/debug/freehold?format=html"} {
		code, out, errs := command(t.Context(), "stats", where)
		if code != 0 || errs != "" || !strings.Contains(out, "\nshown by stats  3.00 KiB ") || !strings.Contains(out, fmt.Sprintf(", pid %d, ", os.Getpid())) {
			t.Errorf("%s: code %d, %q, %q", where, code, out, errs)
		}
		checkPlain(t, out)
	}
	code, out, _ := command(t.Context(), "stats", "--json", s.URL)
	var snapshot web.Snapshot
	if err := json.Unmarshal([]byte(out), &snapshot); code != 0 || err != nil || snapshot.PID != os.Getpid() {
		t.Errorf("--json: code %d, %v, %q", code, err, out)
	}
}

// What the page has of a budget and of accounts is printed too, and a page without them is read.
func TestStatsPrintsTheBudgetAndAccounts(t *testing.T) {
	s := servePage(t)
	code, out, errs := command(t.Context(), "stats", s.URL+"/old")
	if code != 0 || errs != "" || !strings.Contains(out, "\ncarts  2.00 KiB ") || strings.Contains(out, "budget") || strings.Contains(out, "account") {
		t.Errorf("code %d, %q, %q", code, out, errs)
	}
	b, err := budget.Start(&budget.Options{Limit: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Stop()
	process := b.Account()
	defer process.Close()
	budget.NewAccount(process, &budget.AccountOptions{Name: "tenant", Hard: 8 << 20})
	code, out, errs = command(t.Context(), "stats", s.URL)
	if code != 0 || errs != "" || !strings.Contains(out, "\n1.00 GiB from Options.Limit  ") || !strings.Contains(out, "\nprocess/tenant  ") {
		t.Errorf("code %d, %q, %q", code, out, errs)
	}
	checkPlain(t, out)
}

// A port is one of this machine.
func TestAddress(t *testing.T) {
	const page = "/debug/freehold?format=json"
	for text, want := range map[string]string{
		"6110":                  "http://localhost:6110" + page,
		":6110":                 "http://localhost:6110" + page,
		":6110/at":              "http://localhost:6110/at?format=json",
		"http://:6110":          "http://localhost:6110" + page,
		"[::1]:6110":            "http://[::1]:6110" + page,
		"host":                  "http://host" + page,
		"66110":                 "http://66110" + page, // no port
		"https://host:1/x?y=z":  "https://host:1/x?format=json&y=z",
		"http://10.1.2.3:6110/": "http://10.1.2.3:6110" + page,
	} {
		u, err := (&statsCommand{URL: text}).address()
		if err != nil || u.String() != want {
			t.Errorf("%s: %v, %v, want %s", text, u, err, want)
		}
	}
}

func TestStatsSaysWhatIsWrong(t *testing.T) {
	s := servePage(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip(err)
	}
	silent := l.Addr().String()
	l.Close()
	const mount = `; a program has one at /debug/freehold after http.Handle("/debug/freehold", web.Handler())`
	tests := []struct {
		args []string
		code int
		want string
	}{
		{nil, 2, `expected "<url>"`},
		{[]string{"ftp://x"}, 2, `"ftp://x": only http and https URLs can be read`},
		{[]string{"http://"}, 2, `"http://" is no URL`},
		{[]string{"::"}, 2, `"::" is no URL`},
		{[]string{":"}, 2, `":" is no URL`},
		{[]string{"-i", "0s", s.URL}, 2, "--interval 0s: it must be longer than 0"},
		{[]string{"-i", "soon", s.URL}, 2, "--interval"},
		{[]string{silent}, 1, "http://" + silent + "/debug/freehold: nothing listens there: "},
		{[]string{s.URL + "/nothing"}, 1, s.URL + "/nothing: 404 Not Found" + mount},
		{[]string{s.URL + "/words"}, 1, s.URL + "/words is no freehold page" + mount},
		{[]string{s.URL + "/json"}, 1, s.URL + "/json is no freehold page" + mount},
		{[]string{s.URL + "/later"}, 1, s.URL + `/later has the format "freehold/99", and this command reads "freehold/1"`},
		{[]string{s.URL + "/cut"}, 1, s.URL + "/cut: unexpected EOF"},
	}
	for _, tt := range tests {
		code, out, errs := command(t.Context(), append([]string{"stats"}, tt.args...)...)
		if code != tt.code || out != "" || !strings.Contains(errs, tt.want) {
			t.Errorf("%q: code %d, %q, %q, want code %d and %q", tt.args, code, out, errs, tt.code, tt.want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, errs := command(ctx, "stats", s.URL); code != exitInterrupted || errs != "freehold: interrupted\n" {
		t.Errorf("interrupted: code %d, %q", code, errs)
	}
}
