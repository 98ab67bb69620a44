package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/budget"
)

func TestService(t *testing.T) {
	process := budget.NewAccount(nil, &budget.AccountOptions{Name: "process"})
	defer process.Close()
	s := NewService(nil, process, 4<<20) // without a budget only the test makes pressure
	defer s.Close()
	h := s.Handler()
	for _, tt := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/cache/green/k", "", http.StatusNotFound, ""},
		{"PUT", "/cache/green/k", "value", http.StatusNoContent, ""},
		{"GET", "/cache/green/k", "", http.StatusOK, "value"},
		{"GET", "/cache/blue/k", "", http.StatusNotFound, ""}, // tenants share nothing
		{"PUT", "/cache/red/k", "value", http.StatusNotFound, ""},
		{"PUT", "/cache/blue/k", strings.Repeat("x", 4<<20), http.StatusRequestEntityTooLarge, ""},
		{"GET", "/debug/freehold", "", http.StatusOK, "\nprocess/green "},
		{"GET", "/debug/vars", "", http.StatusOK, `"process/blue":`},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(tt.method, tt.path, strings.NewReader(tt.body)))
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%s %s: status %d, %s", tt.method, tt.path, w.Code, w.Body)
		}
	}
}

// All answers are right, both caches evict within their accounts, and no memory is left.
func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out, 4, 4000, ""); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"all answers right", "process/green", "process/blue"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "evicted 0") {
		t.Errorf("a cache has evicted nothing:\n%s", out.String())
	}
	if all := budget.AllAccounts(); len(all) != 0 || budget.Running() != nil {
		t.Errorf("left: %v, %v", all, budget.Running())
	}
}
