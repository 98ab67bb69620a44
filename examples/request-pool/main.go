// Request-pool runs an HTTP service under load twice: with the memory of
// requests on the Go heap, and in an arena that all of them share.
//
//	go run ./examples/request-pool -requests 50000 -clients 16
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"text/tabwriter"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/arena"
)

func main() {
	requests := flag.Int("requests", 20_000, "requests in all, for each kind of memory")
	clients := flag.Int("clients", 8, "clients at once")
	lines := flag.Int("lines", 100, "lines of an order")
	flag.Parse()
	if *requests < 1 || *clients < 1 || *lines < 0 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "request-pool: -requests and -clients are at least 1, -lines at least 0, and there are no arguments")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *requests, *clients, *lines); err != nil {
		fmt.Fprintln(os.Stderr, "request-pool:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, requests, clients, lines int) error {
	heap := freehold.NewHeap(nil)
	defer heap.Close()
	shared, err := arena.NewShared(heap, &arena.SharedOptions{MaxBytes: 256 << 20})
	if err != nil {
		return err
	}
	defer shared.Close()

	fmt.Fprintf(w, "%d requests of %d lines from %d clients; client and server are one process\n\n", requests, lines, clients)
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(tw, "memory\trequests/s\tp50 ms\tp99 ms\tGo allocations a request\tGo KB a request\tcollections")
	for _, m := range []struct {
		name    string
		service *service
	}{
		{"Go heap", &service{}},
		{"arena", &service{shared: shared}},
	} {
		if err := measure(ctx, tw, m.name, m.service, requests, clients, lines); err != nil {
			return err
		}
	}
	tw.Flush()

	held := shared.Stats().Reserved
	shared.Reset()
	if err := shared.CloseStrict(); err != nil {
		return err
	}
	st := heap.Stats()
	fmt.Fprintf(w, "\nthe arena held %d KB; all freed: the heap holds %d blocks of %d bytes\n", held>>10, st.Blocks, st.Allocated)
	return nil
}

// measure runs a service under load and prints what that took.
func measure(ctx context.Context, w io.Writer, name string, s *service, requests, clients, lines int) (err error) {
	url, stop, err := listen(s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if _, err := load(ctx, url, min(requests, 100*clients), clients, lines); err != nil { // the first ones are not like the others
		return err
	}

	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	took, err := load(ctx, url, requests, clients, lines)
	if err != nil {
		return err
	}
	seconds := time.Since(start).Seconds()
	runtime.ReadMemStats(&after)

	n := float64(requests)
	fmt.Fprintf(w, "%s\t%.0f\t%.3f\t%.3f\t%.1f\t%.1f\t%d\n", name, n/seconds,
		took[len(took)/2].Seconds()*1e3, took[len(took)*99/100].Seconds()*1e3,
		float64(after.Mallocs-before.Mallocs)/n, float64(after.TotalAlloc-before.TotalAlloc)/n/1e3,
		after.NumGC-before.NumGC)
	return nil
}

// listen serves on a free port of this machine. stop waits for the requests in
// progress.
func listen(h http.Handler) (url string, stop func() error, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	// A client that is slow holds a guard, and what others give up meanwhile
	// is not recycled: hence the timeouts.
	server := &http.Server{Handler: h, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	return "http://" + l.Addr().String(), func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		err := server.Shutdown(ctx)
		if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
			err = errors.Join(err, serveErr)
		}
		return err
	}, nil
}
