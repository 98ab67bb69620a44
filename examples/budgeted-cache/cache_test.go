package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
)

// newService has no budget, so that nothing but the test makes pressure.
func newService(t *testing.T, hard int64) (*Service, *budget.Account) {
	process := budget.NewAccount(nil, &budget.AccountOptions{Name: "process"})
	t.Cleanup(process.Close)
	s := NewService(process, hard)
	t.Cleanup(s.Close)
	return s, process
}

// Without eviction a cache holds what was put last. A value that can never fit evicts nothing.
func TestCache(t *testing.T) {
	account := budget.NewAccount(nil, &budget.AccountOptions{MaxBytes: 8 << 20})
	defer account.Close()
	c := NewCache(account)
	for key := range 200 {
		for _, v := range []int{key + 1000, key} {
			if err := c.Put(fmt.Sprint(key%100), valueOf("a", v)); err != nil {
				t.Fatal(err)
			}
		}
	}
	var full *budget.FullError
	if err := c.Put("large", make([]byte, 9<<20)); !errors.As(err, &full) || full.Account != account {
		t.Errorf("a value above the limit: %v", err)
	}
	for key := range 100 {
		if v, ok := c.Get(fmt.Sprint(key), nil); !ok || !bytes.Equal(v, valueOf("a", key+100)) {
			t.Errorf("key %d: %v, %d bytes", key, ok, len(v))
		}
	}
	if st := account.Stats(); c.Len() != 100 || st.Live != 100 || st.Evicted != 0 {
		t.Errorf("%d values, %v", c.Len(), st)
	}
	c.Close()
	if live := account.Live(); live != 0 || c.Len() != 0 {
		t.Errorf("after Close: %d values, %d blocks", c.Len(), live)
	}
}

// With goroutines that put values of all sizes into a full cache, the limit holds, and what is
// found is right.
func TestCacheAtItsLimit(t *testing.T) {
	const limit = 8 << 20
	account := budget.NewAccount(nil, &budget.AccountOptions{MaxBytes: limit})
	defer account.Close()
	c := NewCache(account)
	var work sync.WaitGroup
	for g := range 4 {
		work.Go(func() {
			for i := range 2000 {
				key := (i*7 + g) % 3000
				if v, ok := c.Get(fmt.Sprint(key), nil); ok && !bytes.Equal(v, valueOf("a", key)) {
					t.Errorf("key %d has %d bytes", key, len(v))
				}
				// Blocks of mixed sizes fragment memory, so that evictions may not be enough.
				if err := c.Put(fmt.Sprint(key), valueOf("a", key)); err != nil && !errors.Is(err, freehold.ErrOutOfMemory) {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	if st := account.Stats(); st.Peak > limit || st.Evicted == 0 || st.Live != c.Len() || st.LiveBytes < limit/4 {
		t.Errorf("%d values, %v, peak %d", c.Len(), st, st.Peak)
	}
	c.Close()
	if live := account.Live(); live != 0 {
		t.Errorf("%d blocks after Close", live)
	}
}

// Under pressure each cache gives its part of what is wanted, and the memory with it.
func TestPressureShrinksTheCaches(t *testing.T) {
	s, process := newService(t, 16<<20)
	for _, c := range s.caches {
		for key := range 2000 {
			if err := c.Put(fmt.Sprint(key), valueOf("a", key)); err != nil {
				t.Fatal(err)
			}
		}
	}
	before := process.Stats().Used
	s.giveBack(t.Context(), budget.Pressure{Level: budget.Soft, Wanted: 8 << 20})
	if after := process.Stats().Used; before-after < 6<<20 {
		t.Errorf("%d bytes used, and before %d", after, before)
	}
	for name, c := range s.caches {
		if c.Len() == 0 {
			t.Errorf("%s has nothing left", name)
		}
	}
}

// A function of OnPressure may run after Stop: it leaves the accounts of a closed service alone.
func TestPressureAfterClose(t *testing.T) {
	s, process := newService(t, 4<<20)
	s.Close()
	process.Close()
	s.giveBack(t.Context(), budget.Pressure{Level: budget.Soft, Wanted: 8 << 20})
}

func TestService(t *testing.T) {
	s, _ := newService(t, 4<<20)
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
		{"PUT", "/cache/blue/k", strings.Repeat("x", maxValueBytes+1), http.StatusBadRequest, ""},
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

// The load gets right answers, no tenant passes its limit, and nothing is left.
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
	if all := budget.AllAccounts(); len(all) != 0 || budget.Running() != nil {
		t.Errorf("left: %v, %v", all, budget.Running())
	}
}
