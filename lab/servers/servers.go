// Servers: freehold cache beside memcached, by a client that reads the processor time and memory of
// the server.
//
// Each round starts each server anew, fills it, and runs each load for some time. The client shares
// the processors with the server, so compare the processor time of an operation first.

// Package servers measures servers of memcached's protocol.
package servers

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// Command is the command line.
type Command struct {
	Server []string      `placeholder:"NAME=COMMAND" help:"A server, and how it is started, with {addr}, {host} and {port} for where it listens." default:"freehold=freehold cache -m 1GiB -l {addr},memcached=memcached -u nobody -m 1024 -t 2 -l {host} -p {port}"`
	Items  int           `default:"1000000" help:"Items of 100 bytes, with keys of 12."`
	Time   time.Duration `default:"2s" help:"How long each load runs."`
	Rounds int           `default:"3" help:"How often each server is started; medians are shown."`
	Load   []string      `sep:"none" placeholder:"NAME" help:"Run this load only; may be repeated."`
}

// A load is the commands that each connection sends, and the reply to each.
type load struct {
	name        string
	connections int
	inFlight    int // commands in a write
	keys        int // of a command
	command     string
}

var loads = []load{
	{"get, one at a time, 1 connection", 1, 1, 1, "get"},
	{"get, one at a time", 50, 1, 1, "get"},
	{"mg, one at a time", 50, 1, 1, "mg"},
	{"mg, 16 in flight", 8, 16, 1, "mg"},
	{"mg, 100 in flight", 8, 100, 1, "mg"},
	{"get of 100 keys", 8, 1, 100, "get"},
	{"set, 16 in flight", 8, 16, 1, "set"},
	{"90% set, 16 in flight", 8, 16, 1, mostlySet},
	{"get, one at a time, 100 connections", 100, 1, 1, "get"},
	{"get, one at a time, 500 connections", 500, 1, 1, "get"},
}

// mostlySet is nine sets and then a get, again and again.
const mostlySet = "90% set"

const (
	valueBytes = 100
	keyBytes   = 12
)

var value = strings.Repeat("v", valueBytes)

// A figure is one measurement: thousands of keys a second, and the server's processor time for a
// key.
type figure struct{ rate, micros float64 }

// Run measures all servers.
func (c *Command) Run(ctx context.Context, st cli.Streams) error {
	figures := map[string][]figure{}
	resident := map[string][]float64{}
	for range c.Rounds {
		for _, s := range c.Server {
			name, command, _ := strings.Cut(s, "=")
			if err := c.round(ctx, name, command, figures, resident); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	t := tabwriter.NewWriter(st.Out, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "load")
	for _, s := range c.Server {
		name, _, _ := strings.Cut(s, "=")
		fmt.Fprintf(t, "\t%s: k/s\tCPU us", name)
	}
	fmt.Fprintln(t)
	for _, l := range c.loads() {
		fmt.Fprint(t, l.name)
		for _, s := range c.Server {
			name, _, _ := strings.Cut(s, "=")
			all := figures[name+l.name]
			fmt.Fprintf(t, "\t%.0f\t%.2f", median(all, func(f figure) float64 { return f.rate }), median(all, func(f figure) float64 { return f.micros }))
		}
		fmt.Fprintln(t)
	}
	fmt.Fprint(t, "resident bytes an item")
	for _, s := range c.Server {
		name, _, _ := strings.Cut(s, "=")
		fmt.Fprintf(t, "\t%.0f\t", median(resident[name], func(f float64) float64 { return f }))
	}
	fmt.Fprintln(t)
	return t.Flush()
}

func median[T any](all []T, of func(T) float64) float64 {
	var figures []float64
	for _, a := range all {
		figures = append(figures, of(a))
	}
	slices.Sort(figures)
	return figures[len(figures)/2]
}

func (c *Command) loads() []load {
	return slices.DeleteFunc(slices.Clone(loads), func(l load) bool {
		return len(c.Load) > 0 && !slices.Contains(c.Load, l.name)
	})
}

// round starts a server and runs all loads.
func (c *Command) round(ctx context.Context, name, command string, figures map[string][]figure, resident map[string][]float64) error {
	addr, err := freeAddress()
	if err != nil {
		return err
	}
	host, port, _ := net.SplitHostPort(addr)
	words := strings.Fields(strings.NewReplacer("{addr}", addr, "{host}", host, "{port}", port).Replace(command))
	server := exec.CommandContext(ctx, words[0], words[1:]...)
	if err := server.Start(); err != nil {
		return err
	}
	defer server.Wait()
	defer server.Process.Kill()
	pid := server.Process.Pid
	if err := await(ctx, addr); err != nil {
		return err
	}
	empty, err := pages(pid)
	if err != nil {
		return err
	}
	if err := c.fill(addr); err != nil {
		return err
	}
	full, err := pages(pid)
	if err != nil {
		return err
	}
	resident[name] = append(resident[name], float64(full-empty)/float64(c.Items))
	for _, l := range c.loads() {
		f, err := l.run(addr, pid, c.Items, c.Time)
		if err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		figures[name+l.name] = append(figures[name+l.name], f)
	}
	return nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// await returns when a server listens.
func await(ctx context.Context, addr string) error {
	for range 100 {
		if conn, err := net.Dial("tcp", addr); err == nil {
			return conn.Close()
		}
		time.Sleep(50 * time.Millisecond)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return fmt.Errorf("it does not listen at %s", addr)
}

func key(b []byte, n int) []byte { return fmt.Appendf(b, "key-%08d", n) }

// fill stores all items.
func (c *Command) fill(addr string) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	const batch = 1000
	reply := make([]byte, batch*len("STORED\r\n"))
	var say []byte
	for i := 0; i < c.Items; i += batch {
		say = say[:0]
		for j := range batch {
			say = fmt.Appendf(say, "set %s 0 0 %d\r\n%s\r\n", key(nil, i+j), valueBytes, value)
		}
		if _, err := conn.Write(say); err != nil {
			return err
		}
		if _, err := io.ReadFull(conn, reply); err != nil {
			return err
		}
	}
	return nil
}

// run runs a load, and returns its figures.
func (l *load) run(addr string, pid, items int, d time.Duration) (figure, error) {
	conns := make([]net.Conn, l.connections)
	for i := range conns {
		var err error
		if conns[i], err = net.Dial("tcp", addr); err != nil {
			return figure{}, err
		}
		defer conns[i].Close()
	}
	began := time.Now()
	cpu, err := cpuTime(pid)
	if err != nil {
		return figure{}, err
	}
	var done atomic.Int64
	var wg sync.WaitGroup
	failed := make(chan error, len(conns))
	for _, c := range conns {
		wg.Go(func() {
			n, err := l.talk(c, items, began.Add(d))
			done.Add(int64(n))
			if err != nil {
				failed <- err
			}
		})
	}
	wg.Wait()
	close(failed)
	if err := <-failed; err != nil {
		return figure{}, err
	}
	after, err := cpuTime(pid)
	n := float64(done.Load())
	return figure{n / time.Since(began).Seconds() / 1000, float64((after - cpu).Microseconds()) / n}, err
}

// talk runs the load on one connection until a time, and returns how many keys it asked for.
func (l *load) talk(c net.Conn, items int, until time.Time) (keys int, err error) {
	var say, got []byte
	for n := 0; time.Now().Before(until); {
		say = say[:0]
		size, first, last := 0, "", ""
		for range l.inFlight {
			command := l.command
			if n++; command == mostlySet {
				command = "set"
				if n%10 == 0 {
					command = "get"
				}
			}
			say = l.say(say, command, items)
			last = replies(command, l.keys)
			first = cmp.Or(first, last)
			size += len(last)
		}
		got = slices.Grow(got[:0], size)[:size]
		if _, err := c.Write(say); err != nil {
			return keys, err
		}
		if _, err := io.ReadFull(c, got); err != nil {
			return keys, err
		}
		if string(got[:2]) != first[:2] || !bytes.HasSuffix(got, []byte(last[len(last)-2:])) {
			return keys, fmt.Errorf("an unexpected reply: %.80q", got)
		}
		keys += l.inFlight * l.keys
	}
	return keys, nil
}

// say appends a command with random keys.
func (l *load) say(b []byte, command string, items int) []byte {
	b = append(b, command...)
	for range l.keys {
		b = key(append(b, ' '), rand.IntN(items))
	}
	switch command {
	case "mg":
		b = append(b, " v"...)
	case "set":
		b = fmt.Appendf(b, " 0 0 %d\r\n%s", valueBytes, value)
	}
	return append(b, "\r\n"...)
}

// Replies of the size that each command's has.
var (
	mgReply  = fmt.Sprintf("VA %d\r\n%s\r\n", valueBytes, value)
	getReply = fmt.Sprintf("VALUE %s 0 %d\r\n%s\r\n", strings.Repeat("k", keyBytes), valueBytes, value)
	getOne   = getReply + "END\r\n"
	getMany  = strings.Repeat(getReply, 100) + "END\r\n"
)

// replies returns a reply to a command of n keys, 1 or 100.
func replies(command string, n int) string {
	switch {
	case command == "mg":
		return mgReply
	case command == "set":
		return "STORED\r\n"
	case n == 1:
		return getOne
	}
	return getMany
}

// pages returns the resident bytes of a process.
func pages(pid int) (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.Fields(string(data))[1], 10, 64)
	return n * int64(os.Getpagesize()), err
}

// cpuTime returns the processor time of a process. Linux counts it in hundredths of a second.
func cpuTime(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(data), ") ")
	words := strings.Fields(after)
	user, err1 := strconv.ParseInt(words[11], 10, 64)
	system, err2 := strconv.ParseInt(words[12], 10, 64)
	if err1 != nil || err2 != nil {
		return 0, fmt.Errorf("/proc/%d/stat is %q", pid, data)
	}
	return time.Duration(user+system) * 10 * time.Millisecond, nil
}
