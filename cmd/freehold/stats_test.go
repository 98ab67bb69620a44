package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/cache"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
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
	b := freehold.Must(budget.Start(&budget.Options{Limit: 1 << 30}))
	defer b.Stop()
	process := b.Account()
	defer process.Close()
	budget.NewAccount(process, &budget.AccountOptions{Name: "tenant", MaxBytes: 8 << 20})
	code, out, errs = command(t.Context(), "stats", s.URL)
	if code != 0 || errs != "" || !strings.Contains(out, "\n1.00 GiB from Options.Limit  ") || !strings.Contains(out, "\nprocess/tenant  ") {
		t.Errorf("code %d, %q, %q", code, out, errs)
	}
	checkPlain(t, out)
}

// What the page has of caches is printed too.
func TestStatsPrintsCaches(t *testing.T) {
	s := servePage(t)
	c := cache.New(freehold.Default(), &cache.Options{Name: "sessions", MaxBytes: 1 << 20})
	defer c.Close()
	c.Get(nil, []byte("k"))
	code, out, errs := command(t.Context(), "stats", s.URL)
	want := regexp.MustCompile(`(?m)^cache +entries +live +reserved +limit +hits +misses .*\nsessions +0 +0 B +0 B +1.00 MiB +0 +1 +0.0% `)
	if code != 0 || errs != "" || !want.MatchString(out) {
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
	const silent = "127.0.0.1:1" // which no system gives to who asks for any port
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
	if code, _, errs := command(ctx, "stats", s.URL); code != cli.Interrupted || errs != "freehold: interrupted\n" {
		t.Errorf("interrupted: code %d, %q", code, errs)
	}
}

// hostilePage serves an answer that no freehold page gives.
func hostilePage(t *testing.T, answer string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, answer) }))
	t.Cleanup(s.Close)
	return s.URL
}

// Whatever an answer has where a terminal would act on it, is escaped: in each string of a
// snapshot, and in JSON.
func TestStatsEscapesWhatAServerSays(t *testing.T) {
	var s web.Snapshot
	text := hostile(reflect.ValueOf(&s).Elem(), 0)
	s.Format, s.SampleRate, s.Heaps[0].GuardedEver = web.Format, 1, 1
	body := freehold.Must(json.Marshal(s))
	// The C1 control character needs no escape in JSON.
	url := hostilePage(t, strings.ReplaceAll(string(body), `\u001b`, "\u009b")+"\r\n")
	for _, args := range [][]string{{url}, {"--json", url}} {
		code, out, errs := command(t.Context(), append([]string{"stats"}, args...)...)
		if code != 0 || errs != "" {
			t.Fatalf("%q: code %d, %q", args, code, errs)
		}
		if at := strings.IndexFunc(out, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); at >= 0 {
			t.Errorf("%q: raw %q in %q", args, out[at], out)
		}
		if n := strings.Count(out, `\u009b`); args[0] == "--json" && n != text {
			t.Errorf("%d strings in %q, want %d", n, out, text)
		}
		for _, name := range []string{"Program", "Go", "Tag", "Source", "Problem", "Heap", "Through", "Function", "File"} {
			if !strings.Contains(out, name) {
				t.Errorf("%q: no %s in %q", args, name, out)
			}
		}
	}
}

// hostile sets each string in v to its field's name and an escape sequence, and each list to one
// element. It returns how many strings there are.
func hostile(v reflect.Value, depth int) (strings int) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return hostile(v.Elem(), depth)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		return hostile(v.Index(0), depth)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return 0
		}
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() == reflect.String && v.Type().Field(i).Name != "Format" {
				f.SetString(v.Type().Field(i).Name + "\x1b[31m")
				strings++
			} else {
				strings += hostile(f, depth+1)
			}
		}
	}
	return strings
}

// An error has nothing of an answer raw either.
func TestStatsEscapesErrors(t *testing.T) {
	for _, answer := range []string{
		"HTTP/1.1 404 \x1b]0;owned\a\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\x1b[31m red\r\n\r\n",
		"HTTP/1.1 \x1b[31m\r\n\r\n",
		"\x1b[31m\r\n\r\n",
		"HTTP/1.1 302 Found\r\nLocation: gopher://\u009b31m\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: \u009b31m\r\n\r\n",
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Skip(err)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				http.ReadRequest(bufio.NewReader(c))
				fmt.Fprint(c, answer)
				c.Close()
			}
		}()
		code, out, errs := command(t.Context(), "stats", l.Addr().String())
		l.Close()
		if at := strings.IndexFunc(errs, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); code != 1 || out != "" || at >= 0 {
			t.Errorf("%q: code %d, %q, %q", answer, code, out, errs)
		}
	}
}

// The memory for an answer is bounded: its bytes, and the values decoded from them.
func TestStatsBoundsAnAnswer(t *testing.T) {
	const most = 4 << 20
	page := func(rest string) string { return `{"Format":"` + web.Format + `",` + rest + `}` }
	fill := func(start, part, end string) string {
		return page(start + strings.Repeat(part, (most-100-len(start)-len(end))/len(part)) + end)
	}
	for _, tt := range []struct {
		what, answer, want string
	}{
		{"too long", page(`"Program":"` + strings.Repeat("x", most) + `"`), ": the answer is longer than 4.00 MiB, which is no freehold page's\n"},
		{"empty heaps", fill(`"Heaps":[0`, ",0", "]"), ": the answer's lists have more than 16384 elements, or nest deeper than 16, which"},
		{"heaps again and again", fill(`"Heaps":[{}]`, `,"Heaps":[{},{}]`, ""), " elements, or "},
		{"nested", fill(`"x":`, "[", ""), " nest deeper than 16, "},
		{"brackets in a string", fill(`"Program":"\"`, "[,", `"`), ""},
		{"a name that is quoted", fill(`"Heaps":[{"Name":"`, "\x7f", `"}`+strings.Repeat(",{}", 15000)+"]"), ""},
		{"a wide table", page(`"Accounts":[{"Name":"` + strings.Repeat("x", 1<<20) + `"}` + strings.Repeat(",{}", 16000) + "]"), ""},
	} {
		url := hostilePage(t, tt.answer)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		code, _, errs := command(t.Context(), "stats", url)
		runtime.ReadMemStats(&after)
		if (code != 0) != (tt.want != "") || !strings.Contains(errs, tt.want) {
			t.Errorf("%s: code %d, %q, want %q", tt.what, code, errs, tt.want)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 64*most { // garbage and the server's included
			t.Errorf("%s: %s allocated", tt.what, web.Size(int(n)))
		}
	}
}
