// Budgeted-cache serves the caches of two tenants, each with a limit of its own below the memory
// budget of the process.
//
//	go run ./examples/budgeted-cache                         # a load, and figures
//	go run ./examples/budgeted-cache -http localhost:6060    # then serves until interrupted
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

	"github.com/freehold-go/freehold/budget"
)

type options struct {
	mib, requests int
	http          string
}

func main() {
	var o options
	flag.IntVar(&o.mib, "mib", 16, "MiB that a tenant may have")
	flag.IntVar(&o.requests, "requests", 50_000, "requests of the load")
	flag.StringVar(&o.http, "http", "", "an `address` to go on serving on, such as localhost:6060")
	flag.Parse()
	if o.mib < 4 || o.requests < 0 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "budgeted-cache: -mib is at least 4, -requests is not negative, and it takes no arguments")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "budgeted-cache:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, o options) (err error) {
	b, err := budget.Start(nil) // the container's limit, or a part of the machine's memory
	if err != nil {
		return err
	}
	defer b.Stop()
	process := b.Account()
	defer process.Close() // and the tenants' below it
	s := NewService(process, int64(o.mib)<<20)
	defer s.Close()
	url, stop, err := serve(s.Handler(), o.http)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	keys := o.mib << 20 / (4 << 10) * 2 // half of them fit
	hits, err := load(ctx, url, 8, o.requests, keys)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%v\n\n%d requests, %d hits, all answers right\n\n", b, o.requests, hits)
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "account\tvalues\tMiB used\tpeak\tlimit\tevicted\t")
	for _, name := range tenants {
		c := s.caches[name]
		st := c.account.Stats()
		fmt.Fprintf(tw, "%s\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t\n", st.Name, c.Len(), mib(st.Used), mib(st.Peak), mib(st.MaxBytes), mib(st.Evicted))
	}
	tw.Flush()
	if o.http != "" {
		fmt.Fprintf(w, "\n%s/debug/freehold until interrupted\n", url)
		<-ctx.Done()
	}
	return nil
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// serve serves on an address, or on a free port of this machine. stop waits for the requests in
// progress.
func serve(h http.Handler, address string) (url string, stop func() error, err error) {
	if address == "" {
		address = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", address)
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
