// Request-pool runs an HTTP service whose requests share one arena. Clients check its answers.
//
//	go run ./examples/request-pool
package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
)

func main() {
	if err := run(os.Stdout, 20_000); err != nil {
		fmt.Fprintln(os.Stderr, "request-pool:", err)
		os.Exit(1)
	}
}

// run makes clients send the given number of orders.
func run(w io.Writer, orders int) error {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	shared := arena.NewShared(heap, &arena.SharedOptions{MaxBytes: 256 << 20})
	defer shared.Close()
	s := &service{shared: shared}
	server := httptest.NewUnstartedServer(s) // on a free port of this machine
	// A slow client holds a guard, which delays the reuse of memory of other
	// requests. The timeouts limit that.
	server.Config.ReadTimeout, server.Config.WriteTimeout = 10*time.Second, 10*time.Second
	server.Start()
	defer server.Close()

	const clients = 8
	start, errs := time.Now(), make([]error, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for n := i; n < orders && errs[i] == nil; n += clients {
				errs[i] = send(server, random)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	took := time.Since(start)
	server.Close() // waits for requests, so that no guard is left

	fmt.Fprintf(w, "%d orders in %.2f s, all receipts right\n", orders, took.Seconds())
	fmt.Fprintf(w, "one Reset for every %d requests; the arena holds %d KB\n", resetEvery, shared.Stats().Reserved>>10)
	shared.Close()
	fmt.Fprintf(w, "all freed: the heap holds %d blocks\n", heap.Stats().Live)
	return nil
}

// send sends an order of a hundred lines and checks the receipt.
func send(server *httptest.Server, random *rand.Rand) error {
	var order, want strings.Builder
	total := uint64(0)
	for range 100 {
		article, count := random.Uint64N(1e9), 1+random.Uint64N(9)
		total += count * priceOf(article)
		fmt.Fprintf(&order, "%d %d\n", article, count)
		fmt.Fprintf(&want, "%d of article %d at %d\n", count, article, priceOf(article))
	}
	fmt.Fprintf(&want, "total %d\n", total)
	resp, err := server.Client().Post(server.URL, "text/plain", strings.NewReader(order.String()))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	receipt, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK || string(receipt) != want.String() {
		return fmt.Errorf("status %d, receipt %q, want %q", resp.StatusCode, receipt, want.String())
	}
	return nil
}
