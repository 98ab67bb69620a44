// Feature-store serves feature vectors by string keys over HTTP, under load, from a
// table off-heap and then from a Go map.
//
//	go run ./examples/feature-store                # 20 million keys, 8 GB
//	go run ./examples/feature-store -n 1000000 -time 3s
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
	"text/tabwriter"
	"time"

	"github.com/freehold-go/freehold"
)

type options struct {
	n, clients, keys int
	time             time.Duration
	headroom         int
	only             string
}

func main() {
	var o options
	flag.IntVar(&o.n, "n", 20_000_000, "keys in the table")
	flag.IntVar(&o.clients, "clients", 8, "clients at once")
	flag.IntVar(&o.keys, "keys", 32, "keys of a request")
	flag.DurationVar(&o.time, "time", 10*time.Second, "how long each table is under load")
	flag.IntVar(&o.headroom, "headroom", 256, "MiB by which the Go heap may grow where GOMEMLIMIT is set")
	flag.StringVar(&o.only, "only", "", "one table alone: off-heap or go")
	flag.Parse()
	if o.n < 1 || o.clients < 1 || o.keys < 1 || o.time <= 0 || o.headroom < 16 ||
		o.only != "" && o.only != "off-heap" && o.only != "go" || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "feature-store: -n, -clients and -keys are at least 1, -time is longer than 0, -headroom at least 16, -only is off-heap or go, and it takes no arguments")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "feature-store:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, o options) error {
	fmt.Fprintf(w, "%d keys, each with %d numbers; %d clients that look up %d keys at a time, for %v\n\n", o.n, len(Features{}), o.clients, o.keys, o.time)
	heap := freehold.NewHeap(&freehold.HeapOptions{Name: "features"})
	defer heap.Close()
	var all []figures
	var err error
	if o.only != "go" {
		table := NewTable(heap)
		defer table.Close()
		if all, err = compete(ctx, "off-heap", table, heap, o, []int{0, o.headroom << 20}); err != nil {
			return err
		}
		table.Close()
		heap.Trim() // now, and not after a while, so that the next figures are without it
	}
	left := heap.Stats()
	if o.only != "off-heap" {
		measured, err := compete(ctx, "Go map", newGoTable(), heap, o, []int{0})
		if err != nil {
			return err
		}
		all = append(all, measured...)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	printFigures(tw, all)
	tw.Flush()
	fmt.Fprintf(w, "\nall answers were right; after Close the heap holds %d blocks of %d bytes\n", left.Live, left.LiveBytes)
	return nil
}

// serve serves on a free port of this machine. stop waits for the requests in progress.
func serve(h http.Handler) (url string, stop func() error, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
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
