// Client: a load that checks each answer.

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
)

// load has goroutines ask for keys of all tenants, and put the values that are not there. It
// returns how many requests found one.
func load(ctx context.Context, url string, goroutines, requests, keys int) (hits int64, err error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: goroutines}}
	defer client.CloseIdleConnections()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var found atomic.Int64
	var work sync.WaitGroup
	for g := range goroutines {
		work.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(g)))
			for range requests / goroutines {
				key := min(random.IntN(keys), random.IntN(keys)) // low ones more often
				hit, err := use(ctx, client, url, tenants[random.IntN(len(tenants))], key)
				if err != nil {
					stop(err)
					return
				}
				if hit {
					found.Add(1)
				}
			}
		})
	}
	work.Wait()
	return found.Load(), context.Cause(ctx)
}

// use asks for a key, and puts its value if there is none.
func use(ctx context.Context, client *http.Client, url, tenant string, key int) (hit bool, err error) {
	where, want := fmt.Sprintf("%s/cache/%s/%d", url, tenant, key), valueOf(tenant, key)
	status, got, err := do(ctx, client, http.MethodGet, where, nil)
	switch {
	case err != nil:
		return false, err
	case status == http.StatusOK && bytes.Equal(got, want):
		return true, nil
	case status != http.StatusNotFound:
		return false, fmt.Errorf("GET %s: status %d, %d bytes, want %d", where, status, len(got), len(want))
	}
	status, got, err = do(ctx, client, http.MethodPut, where, want)
	if err == nil && status != http.StatusNoContent && status != http.StatusInsufficientStorage { // a cache may go without
		err = fmt.Errorf("PUT %s: status %d, %s", where, status, got)
	}
	return false, err
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

// valueOf returns the value of a key: 1 to 8 KiB.
func valueOf(tenant string, key int) []byte {
	line := fmt.Sprintf("%s %d\n", tenant, key)
	return bytes.Repeat([]byte(line), (1024+key%7*1024)/len(line)+1)
}
