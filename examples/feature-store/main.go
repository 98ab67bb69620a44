// Feature-store serves feature vectors by string keys over HTTP, from a table off-heap. Clients
// check its answers.
//
//	go run ./examples/feature-store                # a million keys, 0.1 GB
//	go run ./examples/feature-store -n 20000000    # 1.9 GB
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/freehold-go/freehold"
)

func main() {
	n := flag.Int("n", 1_000_000, "number of keys in the table")
	flag.Parse()
	if *n < 1 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "feature-store: -n must be more than 0, and there are no arguments beside flags")
		os.Exit(2)
	}
	if err := run(os.Stdout, *n, 5000); err != nil {
		fmt.Fprintln(os.Stderr, "feature-store:", err)
		os.Exit(1)
	}
}

// run fills a table with n keys and sends requests to its service.
func run(w io.Writer, n, requests int) error {
	heap := freehold.NewHeap(&freehold.HeapOptions{Name: "features"})
	defer heap.Close()
	table := NewTable(heap)
	defer table.Close()

	start := time.Now()
	for i := range n {
		if err := table.Put(keyOf(i), featuresOf(i)); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "%d keys in %.1f s: %d MiB off-heap\n", n, time.Since(start).Seconds(), heap.Stats().Committed>>20)

	start = time.Now()
	runtime.GC()
	fmt.Fprintf(w, "a collection beside them takes %.1f ms\n", time.Since(start).Seconds()*1e3)

	if err := load(newService(table), n, requests); err != nil {
		return err
	}
	table.Close()
	fmt.Fprintf(w, "%d requests, all answers right; after Close the heap holds %d blocks\n", requests, heap.Stats().Live)
	return nil
}

// keyOf and featuresOf are the contents of the table.
func keyOf(i int) []byte { return fmt.Appendf(nil, "customer:%010d", i) }

func featuresOf(i int) (f Features) {
	random := rand.NewPCG(2, uint64(i))
	for j := range f {
		f[j] = float32(random.Uint64()>>40) / (1 << 24)
	}
	return f
}

// load sends requests from several clients.
func load(service http.Handler, n, requests int) error {
	server := httptest.NewServer(service) // on a free port of this machine
	defer server.Close()
	const clients = 8
	errs := make([]error, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for r := i; r < requests && errs[i] == nil; r += clients {
				errs[i] = request(server, random, n)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// request asks for 32 keys. About one in 16 is missing.
func request(server *httptest.Server, random *rand.Rand, n int) error {
	var body strings.Builder
	var want []*Features
	for range 32 {
		i := random.IntN(n + n/16 + 1)
		fmt.Fprintf(&body, "%s\n", keyOf(i))
		f := featuresOf(i)
		if i < n {
			want = append(want, &f)
		} else {
			want = append(want, nil)
		}
	}
	resp, err := server.Client().Post(server.URL+"/features", "text/plain", strings.NewReader(body.String()))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer := json.NewDecoder(resp.Body)
	for i, want := range want {
		var got *Features
		if err := answer.Decode(&got); err != nil {
			return fmt.Errorf("%s, line %d: %w", resp.Status, i+1, err)
		}
		if (got == nil) != (want == nil) || got != nil && *got != *want {
			return fmt.Errorf("line %d is %v, want %v", i+1, got, want)
		}
	}
	return nil
}
