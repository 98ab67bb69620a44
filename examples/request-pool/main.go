// Request-pool runs an HTTP service under load, by turns with request memory on the
// Go heap and in an arena that all requests share.
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
		fmt.Fprintln(os.Stderr, "request-pool: -requests and -clients are at least 1, -lines at least 0, and it takes no arguments")
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
	shared := arena.NewShared(heap, &arena.SharedOptions{MaxBytes: 256 << 20})
	defer shared.Close()

	fmt.Fprintf(w, "%d requests of %d lines with either memory, from %d clients in this process\n\n", requests, lines, clients)
	contenders := []*contender{
		newContender("Go heap", &service{}),
		newContender("arena", &service{shared: shared}),
	}
	if err := compete(ctx, contenders, requests, clients, lines); err != nil {
		return err
	}
	printTable(w, contenders, requests)

	held := shared.Stats().Reserved
	shared.Reset()
	shared.Close()
	st := heap.Stats()
	fmt.Fprintf(w, "\nthe arena held %d KB; all freed: the heap holds %d blocks of %d bytes\n", held>>10, st.Live, st.LiveBytes)
	return nil
}

// listen serves on a free port of this machine. stop waits for the requests in
// progress.
func listen(h http.Handler) (url string, stop func() error, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	// A slow client holds a guard, which delays the reuse of memory of other
	// requests. The timeouts limit that.
	server := &http.Server{Handler: h, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute}
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
