// Service: the caches of two tenants over HTTP, below one memory budget.
//
//	GET /cache/TENANT/KEY   200 and the value, or 404
//	PUT /cache/TENANT/KEY   204: it is stored
//	GET /debug/freehold     the page: the budget, the accounts, the heaps
//	GET /debug/vars         the same for monitoring, as freehold.budget and freehold.accounts

package main

import (
	"context"
	"errors"
	"expvar"
	"io"
	"net/http"
	"sync"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
	_ "github.com/freehold-go/freehold/metrics/expvar" // the variables freehold and freehold.budget
	"github.com/freehold-go/freehold/track/web"
)

const maxValueBytes = 1 << 20

var tenants = [...]string{"green", "blue"}

// Service has a cache for each tenant.
type Service struct {
	caches map[string]*Cache

	mu     sync.Mutex // held while caches give back, so that Close waits for that
	closed bool
}

// NewService makes an account for each tenant, which may have hard bytes. All together they may
// have what the process has. Close frees the values, and closing process the accounts.
func NewService(process *budget.Account, hard int64) *Service {
	s := &Service{caches: map[string]*Cache{}}
	for _, name := range tenants {
		s.caches[name] = NewCache(budget.NewAccount(process, &budget.AccountOptions{Name: name, MaxBytes: hard}))
	}
	process.OnPressure(0, s.giveBack)
	return s
}

// giveBack is called when the process is short of memory. Each cache gives its part. A last call
// may come after Close, and after that of the accounts.
func (s *Service) giveBack(_ context.Context, p budget.Pressure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	for _, c := range s.caches {
		c.Shrink(int(p.Wanted / int64(len(s.caches))))
	}
}

// Close frees all values. It waits for giveBack.
func (s *Service) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, c := range s.caches {
		c.Close()
	}
}

// Handler serves the caches, and what operators look at: in a real service that would be on an
// address of its own.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /cache/{tenant}/{key}", s.get)
	mux.HandleFunc("PUT /cache/{tenant}/{key}", s.put)
	mux.Handle("GET /debug/freehold", web.Handler())
	mux.Handle("GET /debug/vars", expvar.Handler())
	return mux
}

func (s *Service) get(w http.ResponseWriter, r *http.Request) {
	c, ok := s.caches[r.PathValue("tenant")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	value, ok := c.Get(r.PathValue("key"), nil)
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(value) // ignore clients that have disconnected
}

func (s *Service) put(w http.ResponseWriter, r *http.Request) {
	c, ok := s.caches[r.PathValue("tenant")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	value, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxValueBytes))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch err := c.Put(r.PathValue("key"), value); {
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
	case errors.Is(err, freehold.ErrOutOfMemory): // a budget.FullError says which account is full
		http.Error(w, err.Error(), http.StatusInsufficientStorage)
	default:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
