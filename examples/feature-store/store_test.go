package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/alloctest"
)

// A reader sees all features of one Put, never a mixture of two.
func TestReadersBesideWriters(t *testing.T) {
	const keys, rounds = 20, 5000
	table := NewTable(alloctest.New(t))
	defer table.Close()
	for i := range keys {
		if err := table.Put(keyOf(i), Features{}); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range rounds {
				if key := keyOf((i + g) % keys); g == 0 {
					x := float32(i)
					if err := table.Put(key, Features{x, x, x, x, x, x, x, x}); err != nil {
						t.Error(err)
					}
				} else if f, ok := table.Get(key); !ok || f != (Features{f[0], f[0], f[0], f[0], f[0], f[0], f[0], f[0]}) {
					t.Errorf("key %s has the features %v", key, f)
				}
			}
		})
	}
	wg.Wait()
}

func TestOutOfMemory(t *testing.T) {
	table := NewTable(freehold.NewLimit(alloctest.New(t), 100_000))
	defer table.Close()
	service := newService(table)
	put := func(i int) int {
		w := httptest.NewRecorder()
		service.ServeHTTP(w, httptest.NewRequest(http.MethodPut, fmt.Sprintf("/features/%s", keyOf(i)), strings.NewReader("[0,0,0,0,0,0,0,1]")))
		return w.Code
	}
	n := 0
	for put(n) == http.StatusNoContent {
		n++
	}
	if status := put(n); status != http.StatusServiceUnavailable || n == 0 || table.Len() != n {
		t.Errorf("status %d after %d keys, of which %d are there", status, n, table.Len())
	}
	if err := table.Put(keyOf(n), Features{}); !errors.Is(err, freehold.ErrOutOfMemory) {
		t.Errorf("error %v", err)
	}
	for i := range n {
		if f, ok := table.Get(keyOf(i)); !ok || f != (Features{7: 1}) {
			t.Fatalf("key %d has the features %v, %v", i, f, ok)
		}
	}
}

func TestService(t *testing.T) {
	table := NewTable(alloctest.New(t))
	defer table.Close()
	service := newService(table)
	for _, test := range []struct {
		method, path, body string
		status             int
		answer             string
	}{
		{"PUT", "/features/a", "[1,2,3,4,5,6,7,8]", 204, ""},
		{"PUT", "/features/b", " [1e30, -0.5, 0,\n0, 0, 0, 0, 0] ", 204, ""},
		{"POST", "/features", "a\nb\nc\na", 200, "[1,2,3,4,5,6,7,8]\n[1e+30,-0.5,0,0,0,0,0,0]\nnull\n[1,2,3,4,5,6,7,8]\n"},
		{"POST", "/features", "", 200, ""},
		{"PUT", "/features/a", "[8,7,6,5,4,3,2,1]", 204, ""},

		{"PUT", "/features/a", "[1,2,3]", 400, "3 numbers, not 8\n"},
		{"PUT", "/features/a", "[1,2,3,4,5,6,7,8,9]", 400, "9 numbers, not 8\n"},
		{"PUT", "/features/a", "x", 400, "invalid character 'x' looking for beginning of value\n"},
		{"PUT", "/features/a", strings.Repeat(" ", maxRequestBytes+1), 400, "http: request body too large\n"},
		{"POST", "/features", strings.Repeat("x", 100_000), 400, "bufio.Scanner: token too long\n"},
		{"POST", "/features", strings.Repeat("x\n", maxRequestBytes), 400, "http: request body too large\n"},
		{"GET", "/features", "", 405, "Method Not Allowed\n"},
		{"POST", "/features", "a\n", 200, "[8,7,6,5,4,3,2,1]\n"}, // the errors changed nothing
	} {
		answer := httptest.NewRecorder()
		service.ServeHTTP(answer, httptest.NewRequest(test.method, test.path, strings.NewReader(test.body)))
		if answer.Code != test.status || answer.Body.String() != test.answer {
			t.Errorf("%s %s: status %d, %.80q, want %d, %q", test.method, test.path, answer.Code, answer.Body.String(), test.status, test.answer)
		}
	}
}

func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := run(&out, 2000, 100); err != nil || !strings.Contains(out.String(), "all answers right; after Close the heap holds 0 blocks") {
		t.Errorf("error %v, printed\n%s", err, out.String())
	}
}

// Looking up one key, and a collection, with the table and with a Go map of the same size.
func BenchmarkTable(b *testing.B) {
	const n = 1_000_000
	random := rand.New(rand.NewPCG(1, 2))
	bench := func(memory string, get func(key []byte) bool) {
		b.Run("get/memory="+memory, func(b *testing.B) {
			key := keyOf(0)
			for b.Loop() {
				if key = fmt.Appendf(key[:0], "customer:%010d", random.IntN(n)); !get(key) {
					b.Fatal("no features")
				}
			}
		})
		b.Run("collection/memory="+memory, func(b *testing.B) {
			for b.Loop() {
				runtime.GC()
			}
		})
	}
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	table := NewTable(heap)
	defer table.Close()
	for i := range n {
		if err := table.Put(keyOf(i), featuresOf(i)); err != nil {
			b.Fatal(err)
		}
	}
	bench("off-heap", func(key []byte) bool {
		_, ok := table.Get(key)
		return ok
	})
	onGo := map[string]*Features{}
	for i := range n {
		f := featuresOf(i)
		onGo[string(keyOf(i))] = &f
	}
	bench("go", func(key []byte) bool {
		_, ok := onGo[string(key)]
		return ok
	})
	runtime.KeepAlive(onGo)
}
