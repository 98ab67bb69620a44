package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cache"
)

// A browser has its cookies.
type browser struct {
	t *testing.T
	http.Client
}

func newBrowser(t *testing.T) *browser {
	return &browser{t, http.Client{Jar: freehold.Must(cookiejar.New(nil))}}
}

// do returns the answer to a request, after its status.
func (b *browser) do(method, url string) string {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, url, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	a, err := b.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return fmt.Sprint(a.StatusCode, " ", strings.TrimSpace(string(body)))
}

// runs calls f with the address of a running service and its number of sessions.
func runs(t *testing.T, file string, f func(url string, sessions int)) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	err := run(ctx, "127.0.0.1:0", file, cache.MinBytes, func(at net.Addr, sessions int) {
		defer stop()
		f("http://"+at.String(), sessions)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSessionsSurviveARestart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sessions")
	alice, bob := newBrowser(t), newBrowser(t)
	runs(t, file, func(url string, sessions int) {
		for _, tt := range []struct {
			b                  *browser
			method, path, want string
		}{
			{alice, "GET", "/me", "401 sign in"},
			{alice, "POST", "/cart/pears", "401 sign in"},
			{alice, "POST", "/login/alice", "200 "},
			{bob, "POST", "/login/bob", "200 "},
			{alice, "POST", "/cart/pears", "200 "},
			{alice, "POST", "/cart/plums", "200 "},
			{bob, "POST", "/logout", "200 "},
			{bob, "GET", "/me", "401 sign in"},
		} {
			if got := tt.b.do(tt.method, url+tt.path); got != tt.want {
				t.Errorf("%s %s: %q, want %q", tt.method, tt.path, got, tt.want)
			}
		}
		if vars := alice.do("GET", url+"/debug/vars"); sessions != 0 || !strings.Contains(vars, `"sessions":`) {
			t.Errorf("%d sessions, and %.100s…", sessions, vars)
		}
	})
	runs(t, file, func(url string, sessions int) {
		_, text, _ := strings.Cut(alice.do("GET", url+"/me"), " ")
		var s Session
		if err := json.Unmarshal([]byte(text), &s); err != nil || sessions != 1 || s.User != "alice" || strings.Join(s.Cart, " ") != "pears plums" || time.Since(s.From) > time.Hour {
			t.Errorf("%d sessions, %q, %v", sessions, text, err)
		}
	})
}

func TestErrors(t *testing.T) {
	if err := run(t.Context(), "127.0.0.1:0", t.TempDir(), cache.MinBytes, nil); err == nil {
		t.Error("a folder was loaded")
	}
	if err := run(t.Context(), "256.0.0.1:0", filepath.Join(t.TempDir(), "none"), cache.MinBytes, nil); err == nil {
		t.Error("256.0.0.1 served")
	}
	if err := run(t.Context(), "127.0.0.1:0", filepath.Join(t.TempDir(), "none", "sessions"), cache.MinBytes, nil); err == nil {
		t.Error("served without a file to save sessions to")
	}
}

// A collection and a request beside 500,000 sessions, and beside a Go map of as many.
func BenchmarkSessions(b *testing.B) {
	const n = 500_000
	tokens := make([]string, n)
	session := func(i int) Session {
		return Session{User: fmt.Sprint("user ", i), Cart: []string{fmt.Sprint("item ", i), "pears"}, From: time.Now()}
	}
	bench := func(memory string, get func(token string) Session) {
		b.Run("get/memory="+memory, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if get(tokens[i*0x9e3779b9%n]).User == "" {
					b.Fatal("no session")
				}
			}
		})
		b.Run("collection/memory="+memory, func(b *testing.B) {
			for b.Loop() {
				runtime.GC()
			}
		})
	}
	s := NewService(512 << 20)
	for i := range tokens {
		tokens[i] = rand.Text()
		if err := s.sessions.Set(tokens[i], session(i)); err != nil {
			b.Fatal(err)
		}
	}
	bench("off-heap", func(token string) Session {
		session, _ := s.sessions.Get(token)
		return session
	})
	s.Close()

	type expiring struct {
		Session
		end time.Time
	}
	var mu sync.RWMutex
	onGo := map[string]*expiring{}
	for i, token := range tokens {
		onGo[token] = &expiring{session(i), time.Now().Add(idle)}
	}
	bench("go", func(token string) Session {
		mu.RLock()
		defer mu.RUnlock()
		return onGo[token].Session
	})
	runtime.KeepAlive(onGo)
}
