// Budgeted-cache serves the caches of two tenants, each with a limit of its own below the memory
// budget of the process.
//
//	go run ./examples/budgeted-cache                         # a load, and figures
//	go run ./examples/budgeted-cache -http localhost:6060    # then serves until interrupted
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/freehold-go/freehold/budget"
)

func main() {
	mib := flag.Int("mib", 16, "limit of each tenant's memory in MiB")
	address := flag.String("http", "", "after the load, serve on this `address`, such as localhost:6060")
	flag.Parse()
	if *mib < 1 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "budgeted-cache: -mib must be more than 0, and there are no arguments beside flags")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *mib, 50_000, *address); err != nil {
		fmt.Fprintln(os.Stderr, "budgeted-cache:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, mib, requests int, address string) error {
	b, err := budget.Start(nil) // the limit is the container's, or a part of the machine's memory
	if err != nil {
		return err
	}
	defer b.Stop()
	process := b.Account()
	defer process.Close() // closes the tenants' accounts too
	s := NewService(b, process, mib<<20)
	defer s.Close()

	l, err := net.Listen("tcp", address) // a free port if address is ""
	if err != nil {
		return err
	}
	server := &http.Server{Handler: s.Handler(), ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	go server.Serve(l)
	defer server.Shutdown(context.Background()) // waits for requests

	keys := mib << 20 / (4 << 10) * 2 // half of the values fit
	if err := load(ctx, "http://"+l.Addr().String(), requests, keys); err != nil {
		return err
	}
	fmt.Fprintf(w, "%v\n%d requests, all answers right\n", b, requests)
	for _, name := range tenants {
		st := s.caches[name].Stats()
		fmt.Fprintf(w, "%s: %d values, %d of %d reads found one, evicted %d\n", name, st.Len, st.Hits, st.Hits+st.Misses, st.Evicted+st.Shrunk)
	}
	for _, st := range budget.AllAccounts() {
		fmt.Fprintln(w, st)
	}
	if address != "" {
		fmt.Fprintf(w, "http://%s/debug/freehold until interrupted\n", address)
		<-ctx.Done()
	}
	return nil
}

// load makes clients get values of all tenants, and put the missing ones.
func load(ctx context.Context, url string, requests, keys int) error {
	const clients = 8
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	defer client.CloseIdleConnections()
	errs := make([]error, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for n := i; n < requests && errs[i] == nil; n += clients {
				key := min(random.IntN(keys), random.IntN(keys)) // lower keys are more frequent
				errs[i] = use(ctx, client, url, tenants[random.IntN(len(tenants))], key)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// use gets a value, and puts it if it is missing.
func use(ctx context.Context, client *http.Client, url, tenant string, key int) error {
	at, want := fmt.Sprintf("%s/cache/%s/%d", url, tenant, key), valueOf(tenant, key)
	status, value, err := do(ctx, client, http.MethodGet, at, nil)
	if err == nil && status == http.StatusNotFound {
		status, _, err = do(ctx, client, http.MethodPut, at, want)
		if status == http.StatusNoContent || status == http.StatusInsufficientStorage { // a cache may refuse a value
			return err
		}
	}
	if err == nil && (status != http.StatusOK || !bytes.Equal(value, want)) {
		err = fmt.Errorf("%s: status %d, %d bytes, want %d", at, status, len(value), len(want))
	}
	return err
}

func do(ctx context.Context, client *http.Client, method, url string, body []byte) (status int, answer []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	a, err := client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer a.Body.Close()
	answer, err = io.ReadAll(a.Body)
	return a.StatusCode, answer, err
}

// valueOf returns the value of a key, 1 to 8 KiB long.
func valueOf(tenant string, key int) []byte {
	line := fmt.Sprintf("%s %d\n", tenant, key)
	return bytes.Repeat([]byte(line), (1024+key%7*1024)/len(line)+1)
}
