// Clients: goroutines that ask for features and check the answers.

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const putEvery = 20 // requests of a client

// appendKey appends the key with a number.
func appendKey(b []byte, n int) []byte {
	b = append(b, "customer:"...)
	digits := strconv.AppendInt(nil, int64(n), 10)
	for range 10 - len(digits) {
		b = append(b, '0')
	}
	return append(b, digits...)
}

// featuresOf returns a version of the features of the key with a number. They tell
// which version they are, so that any mixture is found.
func featuresOf(n int, version uint16) (f Features) {
	x := uint64(n)<<16 | uint64(version)
	f[0] = float32(version)
	for i := 1; i < len(f); i++ {
		x = (x ^ x>>31) * 0x9e3779b97f4a7c15
		f[i] = float32(x>>40) / (1 << 24)
	}
	return f
}

// fill puts n keys into a table.
func fill(ctx context.Context, t featureTable, n int) error {
	var key []byte
	for i := range n {
		if i%1000 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		key = appendKey(key[:0], i)
		if err := t.Put(key, featuresOf(i, 0)); err != nil {
			return err
		}
	}
	return nil
}

// load sends requests for the time o.time and returns how long each took, sorted. The
// first error ends all clients.
func load(ctx context.Context, url string, o options) ([]time.Duration, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	transport := &http.Transport{MaxIdleConnsPerHost: o.clients}
	defer transport.CloseIdleConnections()

	took := make([][]time.Duration, o.clients)
	end := time.Now().Add(o.time)
	var wg sync.WaitGroup
	for i := range o.clients {
		wg.Go(func() {
			c := client{http: &http.Client{Transport: transport}, url: url, n: o.n, rnd: rand.New(rand.NewPCG(1, uint64(i)))}
			for ctx.Err() == nil && time.Now().Before(end) {
				start := time.Now()
				if err := c.request(ctx, o.keys); err != nil {
					cancel(err)
					return
				}
				took[i] = append(took[i], time.Since(start))
			}
		})
	}
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	all := slices.Concat(took...)
	slices.Sort(all)
	return all, nil
}

type client struct {
	http *http.Client
	url  string
	n    int // keys in the table
	rnd  *rand.Rand

	requests     int
	asked        []int
	body, answer bytes.Buffer
}

// request looks up some keys, and once in a while puts one.
func (c *client) request(ctx context.Context, keys int) error {
	c.requests++
	if c.requests%putEvery == 0 {
		return c.put(ctx, c.rnd.IntN(c.n), uint16(c.rnd.UintN(1000)))
	}
	return c.lookUp(ctx, keys)
}

// lookUp asks for keys, of which one in 16 is not there, and checks the answer.
func (c *client) lookUp(ctx context.Context, keys int) error {
	c.asked = c.asked[:0]
	c.body.Reset()
	for range keys {
		n := c.rnd.IntN(c.n + c.n/16 + 1)
		c.asked = append(c.asked, n)
		c.body.Write(append(appendKey(c.body.AvailableBuffer(), n), '\n'))
	}
	if err := c.do(ctx, http.MethodPost, c.url+"/features", http.StatusOK); err != nil {
		return err
	}
	rest := c.answer.String()
	for _, n := range c.asked {
		line, after, ok := strings.Cut(rest, "\n")
		if !ok {
			return fmt.Errorf("an answer of %d lines, for %d keys", strings.Count(c.answer.String(), "\n"), keys)
		}
		rest = after
		if err := checkLine(line, n, n < c.n); err != nil {
			return err
		}
	}
	return nil
}

// checkLine checks the answer for the key with the number n.
func checkLine(line string, n int, exists bool) error {
	if !exists && line == "" {
		return nil
	}
	f, err := parseFeatures(line)
	if err != nil {
		return fmt.Errorf("key %s: %w", appendKey(nil, n), err)
	}
	if !exists || f != featuresOf(n, uint16(f[0])) {
		return fmt.Errorf("key %s has the features %v", appendKey(nil, n), f)
	}
	return nil
}

func (c *client) put(ctx context.Context, n int, version uint16) error {
	c.body.Reset()
	c.body.Write(appendFeatures(c.body.AvailableBuffer(), featuresOf(n, version)))
	return c.do(ctx, http.MethodPut, fmt.Sprintf("%s/features/%s", c.url, appendKey(nil, n)), http.StatusNoContent)
}

// do sends a request with c.body and reads the answer into c.answer.
func (c *client) do(ctx context.Context, method, url string, want int) error {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(c.body.Bytes()))
	if err != nil {
		return err
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	c.answer.Reset()
	if _, err := io.Copy(&c.answer, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != want {
		return fmt.Errorf("%s: %s", resp.Status, bytes.TrimSpace(c.answer.Bytes()))
	}
	return nil
}
