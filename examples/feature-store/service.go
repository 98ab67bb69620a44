// Service: features over HTTP.
//
//	POST /features        keys, one a line
//	  200                 a line of JSON for each: its numbers, or null if it has none
//	PUT  /features/KEY    numbers in JSON
//	  204                 they are stored

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/freehold-go/freehold"
)

const maxRequestBytes = 1 << 20

func newService(t *Table) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /features", func(w http.ResponseWriter, r *http.Request) {
		var answer bytes.Buffer
		to := json.NewEncoder(&answer)
		keys := bufio.NewScanner(http.MaxBytesReader(w, r.Body, maxRequestBytes))
		for keys.Scan() {
			if f, ok := t.Get(keys.Bytes()); ok {
				_ = to.Encode(f) // to memory: no error
			} else {
				_ = to.Encode(nil)
			}
		}
		if err := keys.Err(); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = w.Write(answer.Bytes()) // ignore clients that have disconnected
	})
	mux.HandleFunc("PUT /features/{key}", func(w http.ResponseWriter, r *http.Request) {
		var numbers []float32
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequestBytes)).Decode(&numbers)
		if err == nil && len(numbers) != len(Features{}) {
			err = fmt.Errorf("%d numbers, not %d", len(numbers), len(Features{}))
		}
		if err == nil {
			err = t.Put([]byte(r.PathValue("key")), Features(numbers))
		}
		switch {
		case err == nil:
			w.WriteHeader(http.StatusNoContent)
		case errors.Is(err, freehold.ErrOutOfMemory):
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		default:
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	return mux
}
