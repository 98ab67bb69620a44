// Command debugging is a server that mounts every view of its own memory: the page of off-heap
// memory, the profiles of pprof, and expvar.
//
//	go run ./examples/debugging
//
//	open http://localhost:6060/debug/freehold
//	go tool pprof http://localhost:6060/debug/pprof/offheap
//	curl http://localhost:6060/debug/vars
//
// Its load is a cache that fills up to its limit, and an index that grows and shrinks, with a
// tag for the values, the entries and their keys, in accounts below a memory budget.
package main

import (
	"context"
	"errors"
	"expvar"
	"flag"
	"fmt"
	"net/http"
	"net/http/pprof"
	"os"
	"os/signal"
	"syscall"

	_ "github.com/freehold-go/freehold/metrics/expvar" // the variable freehold
	"github.com/freehold-go/freehold/profile"
	"github.com/freehold-go/freehold/track/web"
)

func main() {
	address := flag.String("http", "localhost:6060", "serve on this `address`, which only operators should reach")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, *address); err != nil {
		fmt.Fprintln(os.Stderr, "debugging:", err)
		os.Exit(1)
	}
}

// serve runs the load and the server until ctx is done.
func serve(ctx context.Context, address string) error {
	s := &http.Server{Addr: address, Handler: handler()}
	context.AfterFunc(ctx, func() { s.Close() })
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	fmt.Printf("http://%s/debug/freehold\n", address)
	err := s.ListenAndServe()
	if errors.Is(err, http.ErrServerClosed) {
		return <-done
	}
	return err
}

// handler serves the pages for operators, which users should not reach.
func handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/debug/freehold", web.Handler(
		web.Link{Text: "Off-heap profile", URL: "/debug/pprof/offheap"},
		web.Link{Text: "Process profile", URL: "/debug/pprof/process"},
		web.Link{Text: "Go's profiles", URL: "/debug/pprof/"},
	))
	mux.Handle("GET /debug/pprof/offheap", profile.Handler())
	mux.Handle("GET /debug/pprof/process", profile.ProcessHandler())
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.Handle("/debug/vars", expvar.Handler())
	return mux
}
