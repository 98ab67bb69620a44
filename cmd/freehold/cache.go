package main

import (
	"context"
	"errors"
	"expvar"
	"fmt"
	"log"
	"math"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/cache"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/cmd/freehold/memcached"
	_ "github.com/freehold-go/freehold/metrics/expvar"
	"github.com/freehold-go/freehold/track/web"
)

// cacheCommand is a cache that memcached's clients can use.
type cacheCommand struct {
	Memory   cli.Size `short:"m" default:"64MiB" placeholder:"SIZE" help:"Items, index and bookkeeping take no more than that: such as 4GiB. Default: 64MiB."`
	Listen   []string `short:"l" placeholder:"ADDR" help:"Serve at this address; may be repeated. Default: 127.0.0.1:11211, or what systemd has opened."`
	Socket   string   `short:"s" placeholder:"PATH" help:"Serve at this Unix socket, and at no address unless -l is given as well."`
	MaxItem  cli.Size `short:"I" default:"1MiB" placeholder:"SIZE" help:"The largest key and value together. Default: 1MiB."`
	MaxConns int      `short:"c" default:"1024" placeholder:"N" help:"Close connections beyond N. Default: 1024."`
	Buffers  cli.Size `placeholder:"SIZE" help:"Commands and replies beyond 16 KiB take no more than that together, beside -m; clients wait for it, and slow ones are disconnected then. Default: a 32nd of -m, and 16 times --max-item at least."`

	Snapshot      string        `placeholder:"FILE" help:"Write all items to FILE when the server stops, and begin with those that are there. Only its owner may read it."`
	SnapshotEvery time.Duration `placeholder:"TIME" help:"Write them that often as well, such as 5m. Default: never."`

	Idle         time.Duration `default:"0s" placeholder:"TIME" help:"Close connections that send nothing for that long. Default: never."`
	WriteTimeout time.Duration `default:"30s" placeholder:"TIME" help:"Close connections that do not take their replies for that long. Default: 30s."`

	NoWatch bool `short:"W" help:"Refuse the command watch, by which clients see the keys of others."`

	Metrics string `placeholder:"ADDR" help:"Serve figures at this address: /debug/vars, and the page /debug/freehold for freehold stats. It is for trusted networks only."`
	tlsFlags
}

func (cacheCommand) Help() string {
	return examples(
		"freehold cache -m 4GiB                                  # at 127.0.0.1:11211",
		"freehold cache -m 4GiB -s /run/cache.sock --snapshot /var/lib/cache --snapshot-every 5m",
		"freehold cache -l :11211 --metrics 127.0.0.1:6060       # and freehold stats 6060 shows its memory",
	)
}

// cacheVersion is the version of memcached whose commands there are. Clients parse it as three numbers, and
// npm's memcached throws at anything behind them.
const cacheVersion = "1.6.18"

// The heap of commands and replies takes up to connBytes a connection, and clientsOwn for itself.
const (
	connBytes  = 64 << 10
	clientsOwn = 2 << 20
)

// mostBytes is the most memory that flags may ask for: what an int counts, and far more than machines have.
const mostBytes = min(1<<50, math.MaxInt)

// graceful is how long clients have to take their replies when the server stops.
const graceful = 5 * time.Second

// goHeap is how large Go's heap becomes before the collector runs. All items are off-heap, so
// that it would run all the time otherwise.
const goHeap = 32 << 20

func (c *cacheCommand) Run(ctx context.Context, st cli.Streams) error {
	if err := c.check(); err != nil {
		return err
	}
	log := log.New(st.Err, "freehold cache: ", 0)
	ctx, ended := untilSignal(ctx, log)
	defer ended()
	saved := &snapshots{path: c.Snapshot, log: log}
	if err := saved.mayWrite(); err != nil {
		return err
	}
	b, err := budget.Start(&budget.Options{GoHeap: goHeap})
	if err != nil {
		return err
	}
	defer b.Stop()
	heap := freehold.NewHeap(&freehold.HeapOptions{Name: "cache", HugePages: true})
	defer heap.Close()
	var server *memcached.Server // before the cache has entries to drop
	items := cache.New(heap, &cache.Options{
		MaxBytes: int(c.Memory), Name: "cache", Access: true, Budget: b,
		OnEvict: func(key []byte, e cache.Entry, why cache.Reason) { server.Evicted(key, e, why) },
	})
	defer items.Close()
	clients := freehold.NewHeap(&freehold.HeapOptions{Name: "clients", MaxBytes: int(c.Buffers) + c.MaxConns*connBytes + clientsOwn})
	defer clients.Close()
	server = memcached.New(items, memcached.Options{
		Heap: clients, Buffers: int(c.Buffers),
		MaxBytes: int(c.Memory), MaxItem: int(c.MaxItem), MaxConns: c.MaxConns, NoWatch: c.NoWatch,
		Write: c.WriteTimeout, Idle: c.Idle, Version: cacheVersion, Build: version(),
	})
	if most := items.MaxEntry(); int(c.MaxItem) > most {
		return cli.Usagef("--max-item %v: at most %s with -m %v", c.MaxItem, cli.Bytes(int64(most)), c.Memory)
	}
	listeners, err := c.listeners()
	if err != nil {
		return err
	}
	saved.items, saved.server = items, server
	if err := saved.load(); err != nil {
		return err
	}
	stop := saved.every(c.SnapshotEvery)
	err = c.serve(ctx, log, server, listeners)
	stop()
	err = errors.Join(err, saved.save())
	log.Print("stopped")
	return err
}

// check finds flags that make no sense.
func (c *cacheCommand) check() error {
	if c.Buffers == 0 {
		c.Buffers = max(c.Memory/32, 16*max(c.MaxItem, 16<<10))
	}
	switch {
	case float64(c.Memory)+float64(c.Buffers)+float64(c.MaxItem)+float64(c.MaxConns)*connBytes > mostBytes:
		return cli.Usagef("-m %v, --buffers %v, --max-item %v, --max-conns %d: more than %s of memory", c.Memory, c.Buffers, c.MaxItem, c.MaxConns, cli.Bytes(mostBytes))
	case c.Memory < cache.MinBytes:
		return cli.Usagef("-m %d: at least %s are needed; a unit may be missing, as in %dMiB", int64(c.Memory), cli.Bytes(cache.MinBytes), int64(c.Memory))
	case c.MaxItem < 1<<10:
		return cli.Usagef("--max-item %v: at least 1 KiB", c.MaxItem)
	case c.Buffers < cli.Size(memcached.LeastBuffers(int(c.MaxItem))):
		return cli.Usagef("--buffers %v: at least %s with --max-item %v, for a command and a reply", c.Buffers, cli.Bytes(int64(memcached.LeastBuffers(int(c.MaxItem)))), c.MaxItem)
	case c.MaxConns < 1:
		return cli.Usagef("--max-conns %d: at least 1", c.MaxConns)
	case c.SnapshotEvery < 0 || c.SnapshotEvery > 0 && c.Snapshot == "":
		return cli.Usagef("--snapshot-every %v: it may not be negative, and needs --snapshot", c.SnapshotEvery)
	case c.Idle < 0 || c.WriteTimeout <= 0:
		return cli.Usagef("--idle %v and --write-timeout %v: neither may be negative, and the latter not 0", c.Idle, c.WriteTimeout)
	}
	return nil
}

// serve serves until ctx is done, which is how the server is stopped, or a listener fails.
func (c *cacheCommand) serve(ctx context.Context, log *log.Logger, server *memcached.Server, listeners []net.Listener) error {
	failed := make(chan error, len(listeners)+1)
	if c.Metrics != "" {
		figures, err := net.Listen("tcp", c.Metrics)
		if err != nil {
			return fmt.Errorf("--metrics: %w", err)
		}
		defer figures.Close()
		log.Printf("metrics at http://%v/debug/freehold", figures.Addr())
		mux := http.NewServeMux()
		mux.Handle("/debug/freehold", web.Handler())
		mux.Handle("/debug/vars", expvar.Handler())
		go func() { failed <- http.Serve(figures, mux) }()
	}
	for _, l := range listeners {
		log.Printf("serving at %v, %v in %v", l.Addr(), l.Addr().Network(), c.Memory)
		go func() { failed <- server.Serve(l) }()
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	for _, l := range listeners {
		l.Close()
	}
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceful)
	defer cancel()
	server.Shutdown(patience)
	return err
}

// listeners opens what is to be served.
func (c *cacheCommand) listeners() (all []net.Listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range all {
				l.Close()
			}
			all = nil
		}
	}()
	config, err := c.tlsConfig()
	if err != nil {
		return nil, err
	}
	if all, err = inherited(); err != nil {
		return all, err
	}
	addresses := c.Listen
	if len(addresses) == 0 && c.Socket == "" && len(all) == 0 {
		addresses = []string{"127.0.0.1:11211"}
	}
	for _, addr := range addresses {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return all, fmt.Errorf("-l: %w", err)
		}
		all = append(all, l)
	}
	if c.Socket != "" {
		l, err := unixListener(c.Socket)
		if err != nil {
			return all, fmt.Errorf("-s: %w", err)
		}
		all = append(all, l)
	}
	return wrapTLS(all, config), nil
}

// unixListener listens at a path. A socket that nobody serves any more is replaced.
func unixListener(path string) (net.Listener, error) {
	l, err := net.Listen("unix", path)
	if err == nil {
		return l, nil
	}
	if info, statErr := os.Lstat(path); statErr != nil || info.Mode().Type() != os.ModeSocket {
		return nil, err
	}
	if conn, dialErr := net.Dial("unix", path); dialErr == nil {
		conn.Close()
		return nil, err
	}
	if removeErr := os.Remove(path); removeErr != nil {
		return nil, errors.Join(err, removeErr)
	}
	return net.Listen("unix", path)
}
