// Cache: the command freehold cache, a server that speaks memcached's protocol.

package main

import (
	"bytes"
	"context"
	"errors"
	"expvar"
	"fmt"
	"log"
	"math"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/budget"
	"github.com/freehold-go/freehold/cache"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/cmd/freehold/memcached"
	_ "github.com/freehold-go/freehold/metrics/expvar"
	"github.com/freehold-go/freehold/track/web"
)

// cacheCommand is freehold cache: a cache server that speaks memcached's protocol.
type cacheCommand struct {
	Memory   cli.Size `short:"m" default:"64MiB" placeholder:"SIZE" help:"Bound of items, index and bookkeeping, such as 4GiB. Default: 64MiB."`
	Listen   []string `short:"l" placeholder:"ADDR" help:"Serve at this address; may be repeated. Default: 127.0.0.1:11211, or what systemd has opened."`
	Socket   string   `short:"s" placeholder:"PATH" help:"Serve at this Unix socket. No address is served then, unless -l is given."`
	MaxItem  cli.Size `short:"I" default:"1MiB" placeholder:"SIZE" help:"Largest item, key and value together. Default: 1MiB."`
	MaxConns int      `short:"c" default:"1024" placeholder:"N" help:"Close connections beyond N. Default: 1024."`
	Buffers  cli.Size `placeholder:"SIZE" help:"Bound of the memory of all commands and replies beyond 16 KiB, beside -m. Clients wait for it; while they wait, slow clients are disconnected. Default: a 32nd of -m, at least 16 times --max-item."`

	Snapshot      string        `placeholder:"FILE" help:"Read items from FILE at the start and write all items to it at the end. Only its owner may read it."`
	SnapshotEvery time.Duration `placeholder:"TIME" help:"Also write FILE at this interval, such as 5m. Default: never."`

	Disk     string   `placeholder:"DIR" help:"Write items that are evicted from memory to a file in DIR, on an SSD, if their values have 512 B or more. A clean stop keeps these items; those in memory need --snapshot."`
	DiskSize cli.Size `placeholder:"SIZE" help:"Size of that file, from 8MiB to 256GiB. Default: 1GiB."`

	Idle         time.Duration `default:"0s" placeholder:"TIME" help:"Close connections that send nothing for this time. Default: never."`
	WriteTimeout time.Duration `default:"30s" placeholder:"TIME" help:"Close connections that take no replies for this time. Default: 30s."`

	Users         string `short:"Y" placeholder:"FILE" help:"Admit only clients that authenticate as one of the users in FILE, whose lines are user:password."`
	AllowShutdown bool   `short:"A" help:"Stop the server at the command shutdown of any client."`

	KeepAll bool `short:"M" help:"Refuse items when there is no room, instead of evicting others."`
	NoWatch bool `short:"W" help:"Refuse the command watch, which shows clients the keys of others."`

	Metrics string `placeholder:"ADDR" help:"Serve metrics at this address: /debug/vars, and /debug/freehold for freehold stats. Use it in trusted networks only."`
	tlsFlags
}

func (cacheCommand) Help() string {
	return examples(
		"freehold cache -m 4GiB                                  # at 127.0.0.1:11211",
		"freehold cache -m 4GiB -s /run/cache.sock --snapshot /var/lib/cache --snapshot-every 5m",
		"freehold cache -m 4GiB --disk /ssd --disk-size 200GiB   # and a file on an SSD behind it",
		"freehold cache -l :11211 --metrics 127.0.0.1:6060       # and freehold stats 6060 shows its memory",
	) + "\n\nmemcached's -p PORT is -l 127.0.0.1:PORT here, and its -m 64 is -m 64MiB. Its -t, -U, -R, -u and -d are not there."
}

// cacheVersion is the version of memcached with the same commands. Clients parse it as three
// numbers; npm's memcached throws if text follows them.
const cacheVersion = "1.6.45"

// The heap of commands and replies may take connBytes for each connection, and clientsOwn for itself.
const (
	connBytes  = 64 << 10
	clientsOwn = 2 << 20
)

// mostBytes is the bound of the memory that all flags ask for together. An int can count it.
const mostBytes = min(1<<50, math.MaxInt)

// graceful is the time in which clients may take their replies when the server stops. Tests change
// it.
var graceful = 5 * time.Second

// goHeap is the size of Go's heap below which the collector does not run. Since all items are
// off-heap, Go's heap is small, and the collector would run all the time.
const goHeap = 32 << 20

func (c *cacheCommand) Run(ctx context.Context, st cli.Streams) error {
	if err := c.check(); err != nil {
		return err
	}
	log := log.New(st.Err, "freehold cache: ", 0)
	secrets := &secrets{tls: c.tlsFlags, users: c.Users, log: log}
	if err := secrets.reload(); err != nil {
		return err
	}
	ctx, ended := untilSignal(ctx, log, secrets.onSignal())
	defer ended()
	ctx, stopped := context.WithCancel(ctx)
	defer stopped()
	saved := &snapshots{path: c.Snapshot, log: log, loaded: make(chan struct{})}
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
	var server *memcached.Server // set before the cache drops an entry
	items, err := newItems(heap, &cache.Options{
		MaxBytes: int(c.Memory), Name: "cache", Access: true, Budget: b, KeepAll: c.KeepAll, Disk: c.disk(),
		OnEvict: func(key []byte, e cache.Entry, why cache.Reason) { server.Evicted(key, e, why) },
	})
	if err != nil {
		return err
	}
	defer items.Close()
	if c.Disk != "" {
		log.Printf("%s on disk in %s", cli.Plural(items.Stats().Disk.Items, "item"), c.Disk)
	}
	clients := freehold.NewHeap(&freehold.HeapOptions{Name: "clients", MaxBytes: int(c.Buffers) + c.MaxConns*connBytes + clientsOwn})
	defer clients.Close()
	options := memcached.Options{
		Heap: clients, Buffers: int(c.Buffers),
		MaxBytes: int(c.Memory), MaxItem: int(c.MaxItem), MaxConns: c.MaxConns, NoWatch: c.NoWatch, KeepAll: c.KeepAll,
		Write: c.WriteTimeout, Idle: c.Idle, Version: cacheVersion, Build: version(),
		Admits: secrets.admits(), Reload: secrets.reloader(),
	}
	if c.AllowShutdown {
		options.Stop = stopped
	}
	server = memcached.New(items, options)
	if most := items.MaxEntry(); int(c.MaxItem) > most {
		return cli.Usagef("--max-item %v: at most %s with -m %v", c.MaxItem, cli.Bytes(int64(most)), c.Memory)
	}
	var metrics net.Listener
	if c.Metrics != "" {
		if metrics, err = net.Listen("tcp", c.Metrics); err != nil {
			return fmt.Errorf("--metrics: %w", err)
		}
		defer metrics.Close()
	}
	listeners, err := c.listeners(secrets.config())
	if err != nil {
		return err
	}
	saved.items, saved.server = items, server
	if err := saved.load(); err != nil {
		return err
	}
	stop := saved.every(c.SnapshotEvery)
	err = c.serve(ctx, log, server, listeners, metrics)
	stop()
	failed := saved.save()
	if c.Disk != "" && (c.Snapshot == "" || failed != nil) && !server.FlushDue().IsZero() {
		items.Clear() // only a snapshot keeps the time
		log.Print("the items on disk are dropped, since a flush_all was to come")
	}
	log.Print("stopped")
	return errors.Join(err, failed)
}

// newItems makes the cache of the server, or returns the error of its disk tier. In that case New
// logs that the cache goes on without the tier, and the server does not: so newItems holds the log
// lines of New until the tier is open.
func newItems(heap *freehold.Heap, o *cache.Options) (*cache.Cache, error) {
	var held bytes.Buffer
	to := log.Writer() // of log/slog too
	log.SetOutput(&held)
	items := cache.New(heap, o)
	log.SetOutput(to)
	if off := items.Stats().Disk.Off; off != nil {
		items.Close()
		return nil, fmt.Errorf("--disk: %s", strings.TrimPrefix(off.Error(), "freehold: disk tier: "))
	}
	_, _ = to.Write(held.Bytes()) // such as why the tier begins empty
	return items, nil
}

// check sets the defaults of Buffers and DiskSize, and returns an error for flags that make no sense.
func (c *cacheCommand) check() error {
	if c.Buffers == 0 {
		c.Buffers = max(c.Memory/32, 16*max(c.MaxItem, 16<<10))
	}
	if c.Disk != "" && c.DiskSize == 0 {
		c.DiskSize = 1 << 30
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
	case c.Disk != "" && (c.DiskSize < 8<<20 || c.DiskSize > 256<<30):
		return cli.Usagef("--disk-size %v: from 8 MiB to 256 GiB", c.DiskSize)
	case c.Disk == "" && c.DiskSize != 0:
		return cli.Usagef("--disk-size %v: it needs --disk", c.DiskSize)
	case c.Disk != "" && c.KeepAll:
		return cli.Usagef("--disk with -M, which evicts nothing")
	case c.Idle < 0 || c.WriteTimeout <= 0:
		return cli.Usagef("--idle %v and --write-timeout %v: neither may be negative, and the latter not 0", c.Idle, c.WriteTimeout)
	}
	return nil
}

// disk returns the disk tier, or nil. Values below 512 B are not written, as with extstore.
func (c *cacheCommand) disk() *cache.Disk {
	if c.Disk == "" {
		return nil
	}
	return &cache.Disk{Dir: c.Disk, MaxBytes: int64(c.DiskSize), MinValue: 512}
}

// terms says for the log how and for whom a network is served. It has no secrets.
func (c *cacheCommand) terms(network string) string {
	tls, users, disk := ", without TLS", "everybody", ""
	if network == "unix" {
		tls = ""
	} else if c.TLSCert != "" {
		tls = ", TLS"
	}
	if c.Users != "" {
		users = "the users in " + c.Users
	}
	if c.Disk != "" {
		disk = fmt.Sprintf(" and %v on disk", c.DiskSize)
	}
	return fmt.Sprintf("(%s%s) for %s, in at most %v of memory%s", network, tls, users, c.Memory, disk)
}

// serve serves until ctx is done or a listener fails. Then it shuts the server down. metrics may be
// nil.
func (c *cacheCommand) serve(ctx context.Context, log *log.Logger, server *memcached.Server, listeners []net.Listener, metrics net.Listener) error {
	failed := make(chan error, len(listeners)+1)
	if metrics != nil {
		log.Printf("metrics at http://%v/debug/freehold", metrics.Addr())
		mux := http.NewServeMux()
		mux.Handle("/debug/freehold", web.Handler())
		mux.Handle("/debug/vars", expvar.Handler())
		go func() { failed <- http.Serve(metrics, mux) }()
	}
	for _, l := range listeners {
		log.Printf("serving at %v %s", l.Addr(), c.terms(l.Addr().Network()))
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
