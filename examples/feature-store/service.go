// Service: features over HTTP.
//
//	POST /features        keys, one a line
//	  200                 a line for each: its numbers, or nothing if it has none
//	PUT  /features/KEY    numbers
//	  204                 they are stored

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/freehold-go/freehold"
)

const maxRequestBytes = 1 << 20

// A featureTable is Table or goTable.
type featureTable interface {
	Get(key []byte) (Features, bool)
	Put(key []byte, f Features) error
	Len() int
}

func newService(t featureTable) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /features", func(w http.ResponseWriter, r *http.Request) {
		answer, err := lookUp(t, http.MaxBytesReader(w, r.Body, maxRequestBytes))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = w.Write(answer) // ignore clients that have disconnected
	})
	mux.HandleFunc("PUT /features/{key}", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequestBytes))
		if err == nil {
			var f Features
			if f, err = parseFeatures(string(body)); err == nil {
				err = t.Put([]byte(r.PathValue("key")), f)
			}
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

// lookUp answers a request for the features of keys.
func lookUp(t featureTable, keys io.Reader) (answer []byte, err error) {
	for in := bufio.NewScanner(keys); ; {
		if !in.Scan() {
			return answer, in.Err()
		}
		if f, ok := t.Get(in.Bytes()); ok {
			answer = appendFeatures(answer, f)
		}
		answer = append(answer, '\n')
	}
}

func appendFeatures(b []byte, f Features) []byte {
	for i, v := range f {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendFloat(b, float64(v), 'g', -1, 32)
	}
	return b
}

// parseFeatures is the reverse of appendFeatures.
func parseFeatures(text string) (f Features, err error) {
	i := 0
	for word := range strings.FieldsSeq(text) {
		if i == len(f) {
			return f, fmt.Errorf("more than %d numbers", len(f))
		}
		v, err := strconv.ParseFloat(word, 32)
		if err != nil {
			return f, err
		}
		f[i] = float32(v)
		i++
	}
	if i < len(f) {
		return f, fmt.Errorf("%d numbers, not %d", i, len(f))
	}
	return f, nil
}
