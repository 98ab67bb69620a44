// Service: the caches of two tenants over HTTP, below one memory budget.
//
//	GET /cache/TENANT/KEY   200 and the value, or 404
//	PUT /cache/TENANT/KEY   204: it is stored
//	GET /debug/freehold     the page: the budget, the accounts, the heaps
//	GET /debug/vars         the same for monitoring, as freehold.budget and freehold.accounts

package main

import (
	"errors"
	"expvar"
	"io"
	"net/http"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/cache"
	_ "github.com/freehold-go/freehold/metrics/expvar" // the variables freehold and freehold.budget
	"github.com/freehold-go/freehold/track/web"
)

var tenants = [...]string{"green", "blue"}

// Service has a cache for each tenant.
type Service struct {
	caches map[string]*cache.Cache
}

// NewService makes an account of hard bytes below process for each tenant, and a cache in it. The
// limits of all tenants together may exceed the process's: caches shrink while b, which may be
// nil, is under pressure. Close frees the values; closing process closes the accounts.
func NewService(b *budget.Budget, process *budget.Account, hard int) *Service {
	s := &Service{caches: map[string]*cache.Cache{}}
	for _, name := range tenants {
		account := budget.NewAccount(process, &budget.AccountOptions{Name: name, MaxBytes: int64(hard)})
		s.caches[name] = cache.New(account, &cache.Options{
			Name:     name,
			MaxBytes: hard - hard/8, // the rest is for the account's bookkeeping and rounding
			Budget:   b,
		})
	}
	return s
}

// Close frees all values. No request may be under way.
func (s *Service) Close() {
	for _, c := range s.caches {
		c.Close()
	}
}

// Handler serves the caches, and pages for operators. A real service would serve those on
// another address.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /cache/{tenant}/{key}", s.get)
	mux.HandleFunc("PUT /cache/{tenant}/{key}", s.put)
	mux.Handle("GET /debug/freehold", web.Handler())
	mux.Handle("GET /debug/vars", expvar.Handler())
	return mux
}

func (s *Service) get(w http.ResponseWriter, r *http.Request) {
	if c, ok := s.caches[r.PathValue("tenant")]; ok {
		// Get copies the value. With View, a slow client would delay the reuse of the cache's
		// memory.
		if value, ok := c.Get(nil, []byte(r.PathValue("key"))); ok {
			_, _ = w.Write(value) // ignore clients that have disconnected
			return
		}
	}
	http.NotFound(w, r)
}

func (s *Service) put(w http.ResponseWriter, r *http.Request) {
	c, ok := s.caches[r.PathValue("tenant")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	value, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(c.MaxEntry())))
	if err == nil {
		err = c.Set([]byte(r.PathValue("key")), value)
	}
	switch {
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
	case errors.Is(err, cache.ErrTooLarge), errors.As(err, new(*http.MaxBytesError)):
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
	case errors.Is(err, freehold.ErrOutOfMemory): // the process has no memory left for the account
		http.Error(w, err.Error(), http.StatusInsufficientStorage)
	default:
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}
