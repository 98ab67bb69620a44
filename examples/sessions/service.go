// Service: the sessions and the handlers.

package main

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"expvar"
	"io/fs"
	"net/http"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cache"
	_ "github.com/freehold-go/freehold/metrics/expvar"
)

// A Session is a client that has signed in.
type Session struct {
	User string    `json:"user"`
	Cart []string  `json:"cart,omitempty"`
	From time.Time `json:"from"`
}

// idle is the time without a request after which a session ends.
const idle = 30 * time.Minute

// Service has the sessions.
type Service struct{ sessions *cache.Of[string, Session] }

// NewService returns a service whose sessions take at most maxBytes. Close returns the memory.
func NewService(maxBytes int) *Service {
	return &Service{cache.NewOf(freehold.Pages(), &cache.OfOptions[string, Session]{
		Options: cache.Options{MaxBytes: maxBytes, TTL: idle, Sliding: true, Name: "sessions", Format: "session 1"},
		Values:  cache.NewCodec[Session](json.Marshal, json.Unmarshal),
	})}
}

func (s *Service) Close() { s.sessions.Close() }

// Load reads the sessions that Save has written. Without a file there are none.
func (s *Service) Load(path string) error {
	if err := s.sessions.RestoreFile(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Save writes all sessions to a file, with the time that each has left.
func (s *Service) Save(path string) error { return s.sessions.SnapshotFile(path) }

// Handler returns the service. /debug/vars has the figures of the cache.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /login/{user}", s.login)
	mux.HandleFunc("GET /me", s.me)
	mux.HandleFunc("POST /cart/{item}", s.add)
	mux.HandleFunc("POST /logout", s.logout)
	mux.Handle("GET /debug/vars", expvar.Handler())
	return http.NewCrossOriginProtection().Handler(mux)
}

// login begins a session. A real service checks a password first.
func (s *Service) login(w http.ResponseWriter, r *http.Request) {
	token := rand.Text()
	if err := s.sessions.Set(token, Session{User: r.PathValue("user"), From: time.Now()}); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: "session", Value: token, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
}

// me shows the session. Each read gives it the whole time again.
func (s *Service) me(w http.ResponseWriter, r *http.Request) {
	session, ok := s.sessions.Get(token(r))
	if !ok {
		http.Error(w, "sign in", http.StatusUnauthorized)
		return
	}
	json.NewEncoder(w).Encode(session)
}

// add puts an item into the cart in one step, so that no item of a request beside it is lost.
func (s *Service) add(w http.ResponseWriter, r *http.Request) {
	signedIn := false
	_, err := s.sessions.Update(token(r), func(e *cache.EntryOf[Session], found bool) cache.Change {
		if signedIn = found; !found {
			return cache.Keep
		}
		e.Value.Cart = append(e.Value.Cart, r.PathValue("item"))
		return cache.Store
	})
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case !signedIn:
		http.Error(w, "sign in", http.StatusUnauthorized)
	}
}

func (s *Service) logout(_ http.ResponseWriter, r *http.Request) { s.sessions.Delete(token(r)) }

// token returns the name of the client's session, or "", which no session has.
func token(r *http.Request) string {
	c, err := r.Cookie("session")
	if err != nil {
		return ""
	}
	return c.Value
}
