// Clients: goroutines that send orders and check the receipts.

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// clients send orders with a given number of lines, n at once, over connections
// that they keep between loads.
type clients struct {
	url      string
	n, lines int
	http     *http.Client
}

func newClients(url string, n, lines int) *clients {
	return &clients{url, n, lines, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n}}}
}

func (cs *clients) close() { cs.http.CloseIdleConnections() }

// load sends requests and returns how long each took, sorted. The first error
// ends all clients.
func (cs *clients) load(ctx context.Context, requests int) ([]time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	var next atomic.Int64
	took := make([]time.Duration, requests)
	var wg sync.WaitGroup
	for i := range cs.n {
		wg.Go(func() {
			c := client{http: cs.http, url: cs.url, rnd: rand.New(rand.NewPCG(1, uint64(i)))}
			for ctx.Err() == nil {
				n := int(next.Add(1)) - 1
				if n >= requests {
					return
				}
				start := time.Now()
				if err := c.order(ctx, uint64(n), cs.lines); err != nil {
					cancel(fmt.Errorf("request %d: %w", n, err))
					return
				}
				took[n] = time.Since(start)
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	slices.Sort(took)
	return took, nil
}

type client struct {
	http    *http.Client
	url     string
	rnd     *rand.Rand
	lines   []line
	receipt bytes.Buffer
}

// order sends an order of random lines and checks the receipt.
func (c *client) order(ctx context.Context, id uint64, lines int) error {
	c.lines = c.lines[:0]
	for range lines {
		c.lines = append(c.lines, line{article: c.rnd.Uint64N(1e9), count: 1 + c.rnd.Uint64N(9)})
	}
	order, err := encodeOrder(goHeap{}, id, c.lines)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(order))
	if err != nil {
		return err
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	c.receipt.Reset()
	if _, err := io.Copy(&c.receipt, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", resp.Status, bytes.TrimSpace(c.receipt.Bytes()))
	}
	return checkReceipt(c.receipt.Bytes(), id, c.lines)
}
