// Sessions serves the sessions of a web service from a cache that survives restarts.
//
//	go run ./examples/sessions -http localhost:8080 -file sessions.snapshot    # until interrupted
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	address := flag.String("http", "localhost:8080", "serve at this `address`")
	file := flag.String("file", "sessions.snapshot", "sessions are in this `file` while the service is down")
	mib := flag.Int("mib", 256, "memory of all sessions in MiB")
	flag.Parse()
	if *mib < 1 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "sessions: -mib must be more than 0, and there are no arguments beside flags")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *address, *file, *mib<<20, func(l net.Addr, n int) { fmt.Printf("http://%v, with %d sessions\n", l, n) }); err != nil {
		fmt.Fprintln(os.Stderr, "sessions:", err)
		os.Exit(1)
	}
}

// run serves until ctx is done, and then saves the sessions. It calls ready once it serves, with
// the number of sessions that the last run had saved.
func run(ctx context.Context, address, file string, maxBytes int, ready func(at net.Addr, sessions int)) error {
	s := NewService(maxBytes)
	defer s.Close()
	if err := s.Load(file); err != nil {
		return err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	if err := s.Save(file); err != nil { // now, while it loses no session
		l.Close()
		return err
	}
	server := &http.Server{Handler: s.Handler(), ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	ready(l.Addr(), s.sessions.Len())
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	return errors.Join(err, server.Shutdown(context.WithoutCancel(ctx)), s.Save(file)) // Shutdown waits for requests
}
