package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

func eachTable(t *testing.T, f func(t *testing.T, table featureTable)) {
	t.Run("off-heap", func(t *testing.T) {
		table := NewTable(alloctest.New(t))
		defer table.Close()
		f(t, table)
	})
	t.Run("go", func(t *testing.T) { f(t, newGoTable()) })
}

func TestTable(t *testing.T) {
	const keys = 500
	eachTable(t, func(t *testing.T, table featureTable) {
		model := map[string]Features{}
		rnd := rand.New(rand.NewPCG(1, 2))
		for range 5000 {
			n := rnd.IntN(keys)
			key := appendKey(nil, n)
			if rnd.IntN(2) == 0 {
				model[string(key)] = featuresOf(n, uint16(rnd.UintN(9)))
				if err := table.Put(key, model[string(key)]); err != nil {
					t.Fatal(err)
				}
			}
			want, exists := model[string(key)]
			if got, ok := table.Get(key); ok != exists || got != want {
				t.Fatalf("key %q has the features %v, %v, want %v, %v", key, got, ok, want, exists)
			}
			if table.Len() != len(model) {
				t.Fatalf("%d keys, want %d", table.Len(), len(model))
			}
		}
	})
}

// Readers see the features of one Put as a whole.
func TestReadersBesideWriters(t *testing.T) {
	eachTable(t, func(t *testing.T, table featureTable) {
		const keys = 20
		if err := fill(t.Context(), table, keys); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for g := range uint64(4) {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(3, g))
				for range 5000 {
					n := rnd.IntN(keys)
					key := appendKey(nil, n)
					if g == 0 {
						if err := table.Put(key, featuresOf(n, uint16(rnd.Uint32()))); err != nil {
							t.Error(err)
						}
						continue
					}
					if f, ok := table.Get(key); !ok || f != featuresOf(n, uint16(f[0])) {
						t.Errorf("key %q has the features %v", key, f)
					}
				}
			})
		}
		wg.Wait()
	})
}

func TestOutOfMemory(t *testing.T) {
	table := NewTable(freehold.NewLimit(alloctest.New(t), 100_000))
	defer table.Close()
	err := fill(t.Context(), table, 1_000_000)
	if !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Fatalf("error %v", err)
	}
	n := table.Len()
	if n == 0 {
		t.Fatal("no keys")
	}
	for i := range n {
		if f, ok := table.Get(appendKey(nil, i)); !ok || f != featuresOf(i, 0) {
			t.Fatalf("key %d has the features %v, %v", i, f, ok)
		}
	}
	answer := httptest.NewRecorder()
	body := strings.NewReader(string(appendFeatures(nil, Features{})))
	for i := range 1000 { // until a table is full
		answer = httptest.NewRecorder()
		body.Seek(0, io.SeekStart)
		newService(table).ServeHTTP(answer, httptest.NewRequest(http.MethodPut, fmt.Sprint("/features/new", i), body))
		if answer.Code != http.StatusNoContent {
			break
		}
	}
	if answer.Code != http.StatusServiceUnavailable {
		t.Errorf("a Put without memory has the status %d", answer.Code)
	}
}

func TestService(t *testing.T) {
	eachTable(t, func(t *testing.T, table featureTable) {
		service := newService(table)
		for _, test := range []struct {
			method, path, body string
			status             int
			answer             string
		}{
			{"PUT", "/features/a", "1 2 3 4 5 6 7 8", 204, ""},
			{"PUT", "/features/b", " 1e30 -0.5 0\n0 0 0 0 0 ", 204, ""},
			{"POST", "/features", "a\nb\nc\na\n", 200, "1 2 3 4 5 6 7 8\n1e+30 -0.5 0 0 0 0 0 0\n\n1 2 3 4 5 6 7 8\n"},
			{"POST", "/features", "", 200, ""},
			{"POST", "/features", "a", 200, "1 2 3 4 5 6 7 8\n"},
			{"PUT", "/features/a", "8 7 6 5 4 3 2 1", 204, ""},
			{"POST", "/features", "a\n", 200, "8 7 6 5 4 3 2 1\n"},

			{"PUT", "/features/a", "1 2 3", 400, "3 numbers, not 8\n"},
			{"PUT", "/features/a", "1 2 3 4 5 6 7 8 9", 400, "more than 8 numbers\n"},
			{"PUT", "/features/a", "1 2 3 4 5 6 7 x", 400, `strconv.ParseFloat: parsing "x": invalid syntax` + "\n"},
			{"POST", "/features", strings.Repeat("x", 100_000), 400, "bufio.Scanner: token too long\n"},
			{"POST", "/features", strings.Repeat("x\n", maxRequestBytes), 400, "http: request body too large\n"},
			{"PUT", "/features/a", strings.Repeat(" ", maxRequestBytes+1), 400, "http: request body too large\n"},
			{"GET", "/features", "", 405, "Method Not Allowed\n"},
			{"POST", "/features", "a\n", 200, "8 7 6 5 4 3 2 1\n"}, // as before the errors
		} {
			answer := httptest.NewRecorder()
			service.ServeHTTP(answer, httptest.NewRequest(test.method, test.path, strings.NewReader(test.body)))
			if answer.Code != test.status || answer.Body.String() != test.answer {
				t.Errorf("%s %s: status %d, %.80q, want %d, %q", test.method, test.path, answer.Code, answer.Body.String(), test.status, test.answer)
			}
		}
	})
}

// The clients find answers that are wrong.
func TestClientsCheckAnswers(t *testing.T) {
	for name, wrong := range map[string]http.HandlerFunc{
		"of another version": func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, strings.Repeat("1 2 3 4 5 6 7 8\n", 4))
		},
		"too short": func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "\n") },
		"empty":     func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "\n\n\n\n") },
		"an error":  func(w http.ResponseWriter, r *http.Request) { http.Error(w, "not now", http.StatusServiceUnavailable) },
	} {
		server := httptest.NewServer(wrong)
		if _, err := load(t.Context(), server.URL, options{n: 1000, clients: 2, keys: 4, time: time.Hour}); err == nil {
			t.Errorf("answers that are %s pass", name)
		}
		server.Close()
	}
	if err := checkLine(string(appendFeatures(nil, featuresOf(5, 3))), 5, false); err == nil {
		t.Error("a key that does not exist has features")
	}
}

func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out, options{n: 2000, clients: 2, keys: 4, time: 30 * time.Millisecond, headroom: 16}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"off-heap, limit", "Go map", "collector, % CPU", "all answers were right; after Close the heap holds 0 blocks of 0 bytes"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}

func TestRunOfOneTable(t *testing.T) {
	for only, other := range map[string]string{"go": "off-heap, limit", "off-heap": "Go map"} {
		var out bytes.Buffer
		if err := run(t.Context(), &out, options{n: 2000, clients: 2, keys: 4, time: 10 * time.Millisecond, headroom: 16, only: only}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), other) {
			t.Errorf("%s alone printed\n%s", only, out.String())
		}
	}
}

func TestRunInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, io.Discard, options{n: 2000, clients: 2, keys: 4, time: time.Hour, headroom: 16}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := run(ctx, io.Discard, options{n: 2000, clients: 2, keys: 4, time: time.Hour, headroom: 16}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

// Look-ups of 32 keys, without HTTP.
func BenchmarkLookUp(b *testing.B) {
	const n, keys = 200_000, 32
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	off := NewTable(heap)
	defer off.Close()
	for _, row := range []struct {
		memory string
		table  featureTable
	}{{"go", newGoTable()}, {"off-heap", off}} {
		if err := fill(b.Context(), row.table, n); err != nil {
			b.Fatal(err)
		}
		b.Run("memory="+row.memory, func(b *testing.B) {
			rnd := rand.New(rand.NewPCG(1, 2))
			var body []byte
			for b.Loop() {
				body = body[:0]
				for range keys {
					body = append(appendKey(body, rnd.IntN(n)), '\n')
				}
				if _, err := lookUp(row.table, bytes.NewReader(body)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
