// Rounds: the time of requests with each kind of memory.
//
//	round 1   Go heap ----- arena -----
//	round 2                              arena ----- Go heap -----
//
// They take turns because the machine's speed varies over seconds by more than the
// difference between them. Each request is timed twice: around the handler, where
// the memory is used, and by the client, whose time includes HTTP and the wait for
// a processor.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"
)

const roundRequests = 2000 // at least, unless there are fewer in all

// A contender is a service and the results of its rounds.
type contender struct {
	name    string
	handler stopwatch
	clients *clients

	// One value per round; times are in milliseconds.
	handlerP50, handlerP99, tripP50, tripP99, rate []float64

	// Sums.
	allocations, bytes uint64
	collections        uint32
}

func newContender(name string, h http.Handler) *contender {
	return &contender{name: name, handler: stopwatch{handler: h}}
}

// compete sends the given number of requests to each contender, by turns. Their
// services run until it returns.
func compete(ctx context.Context, contenders []*contender, requests, clients, lines int) (err error) {
	for _, c := range contenders {
		url, stop, listenErr := listen(&c.handler)
		if listenErr != nil {
			return listenErr
		}
		c.clients = newClients(url, clients, lines)
		defer func() {
			c.clients.close()
			err = errors.Join(err, stop())
		}()
		if _, err := c.clients.load(ctx, min(requests, 100*clients)); err != nil { // warm up
			return err
		}
	}
	contenders = slices.Clone(contenders)
	rounds := max(1, requests/roundRequests)
	for i := range rounds {
		for _, c := range contenders {
			if err := c.round(ctx, requests*(i+1)/rounds-requests*i/rounds); err != nil {
				return err
			}
		}
		slices.Reverse(contenders)
	}
	return nil
}

func (c *contender) round(ctx context.Context, requests int) error {
	c.handler.start(requests)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	trips, err := c.clients.load(ctx, requests)
	if err != nil {
		return err
	}
	seconds := time.Since(start).Seconds()
	runtime.ReadMemStats(&after)

	handler := c.handler.stop()
	c.handlerP50 = append(c.handlerP50, quantile(handler, 0.5))
	c.handlerP99 = append(c.handlerP99, quantile(handler, 0.99))
	c.tripP50 = append(c.tripP50, quantile(trips, 0.5))
	c.tripP99 = append(c.tripP99, quantile(trips, 0.99))
	c.rate = append(c.rate, float64(requests)/seconds)
	c.allocations += after.Mallocs - before.Mallocs
	c.bytes += after.TotalAlloc - before.TotalAlloc
	c.collections += after.NumGC - before.NumGC
	return nil
}

// printTable prints the figures of contenders side by side.
func printTable(w io.Writer, contenders []*contender, requests int) {
	n := float64(requests)
	for _, row := range []struct {
		name  string
		value func(*contender) string
	}{
		{"", func(c *contender) string { return c.name }},
		{"handler, p50 ms", func(c *contender) string { return spread("%.3f", c.handlerP50) }},
		{"handler, p99 ms", func(c *contender) string { return spread("%.3f", c.handlerP99) }},
		{"round trip, p50 ms", func(c *contender) string { return spread("%.2f", c.tripP50) }},
		{"round trip, p99 ms", func(c *contender) string { return spread("%.2f", c.tripP99) }},
		{"requests a second", func(c *contender) string { return spread("%.0f", c.rate) }},
		{"Go allocations a request", func(c *contender) string { return fmt.Sprintf("%.1f", float64(c.allocations)/n) }},
		{"Go KB a request", func(c *contender) string { return fmt.Sprintf("%.1f", float64(c.bytes)/n/1e3) }},
		{"collections", func(c *contender) string { return fmt.Sprint(c.collections) }},
	} {
		fmt.Fprintf(w, "%-24s", row.name)
		for _, c := range contenders {
			fmt.Fprintf(w, "%27s", row.value(c))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, `
Medians of the rounds; in brackets the least and the greatest. The handler's
time is what its memory changes. The p99 of the round trip is mostly
collections and threads that wait for a processor, with either memory.
Compare it over many rounds only.`)
}

// spread returns the median, minimum and maximum of values.
func spread(format string, values []float64) string {
	values = slices.Sorted(slices.Values(values))
	return fmt.Sprintf(format+" ("+format+" to "+format+")", values[len(values)/2], values[0], values[len(values)-1])
}

// quantile returns the q-quantile of the sorted times, in milliseconds.
func quantile(sorted []time.Duration, q float64) float64 {
	return sorted[int(float64(len(sorted)-1)*q)].Seconds() * 1e3
}

// A stopwatch measures how long a handler takes for each request.
type stopwatch struct {
	handler http.Handler

	mu   sync.Mutex
	took []time.Duration
}

func (s *stopwatch) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	s.handler.ServeHTTP(w, r)
	took := time.Since(start)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took = append(s.took, took)
}

// start clears earlier times and makes room for the given number of requests.
func (s *stopwatch) start(requests int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took = make([]time.Duration, 0, requests)
}

// stop returns the times of the requests since start, sorted.
func (s *stopwatch) stop() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.took)
	return s.took
}
