//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cache"
	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/cmd/freehold/memcached"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

// startCache starts freehold cache at a free port, and returns its address and process. The test
// ends it.
func startCache(t *testing.T, args ...string) (address string, process *os.Process) {
	t.Helper()
	cmd := exec.Command(freehold.Must(os.Executable()), append([]string{"cache", "-l", "127.0.0.1:0"}, args...)...)
	address, _ = startServer(t, cmd)
	return address, cmd.Process
}

// startServer starts a command that is freehold cache, and returns its address and its log. The log
// is complete when the command has ended. If it has a snapshot, the server has loaded it. The test
// ends it.
func startServer(t *testing.T, cmd *exec.Cmd) (address string, said *serverLog) {
	t.Helper()
	said = &serverLog{serving: make(chan string, 1)}
	cmd.Stderr = said
	caught := make(chan os.Signal, 1) // a server inherits signals that this process ignores, as under nohup
	signal.Notify(caught, os.Interrupt, syscall.SIGHUP)
	filetest.Must(t, cmd.Start())
	signal.Stop(caught)
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	select {
	case address = <-said.serving:
	case <-time.After(time.Minute):
		cmd.Process.Kill()
		cmd.Wait()
		t.Fatalf("%v does not serve: %s", cmd.Args, said)
	}
	if slices.Contains(cmd.Args, "--snapshot") {
		await(t, "the snapshot is loaded", func() bool { return statIs(t, address, "snapshot_loading") == 0 })
	}
	return address, said
}

// A serverLog has a server's output.
type serverLog struct {
	mu      sync.Mutex // guards text
	text    bytes.Buffer
	metrics string      // where they are, once it is known where it serves
	serving chan string // where it serves
}

var (
	servingAt = regexp.MustCompile(`serving at (127\.0\.0\.1:\d+)`)
	metricsAt = regexp.MustCompile(`metrics at http://(127\.0\.0\.1:\d+)/debug/freehold\n`)
)

func (l *serverLog) Write(p []byte) (int, error) {
	if at := metricsAt.FindSubmatch(p); at != nil {
		l.metrics = string(at[1])
	}
	if at := servingAt.FindSubmatch(p); at != nil {
		l.serving <- string(at[1])
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *serverLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// say sends commands that end with quit, and returns the replies.
func say(t *testing.T, conn net.Conn, commands string) string {
	t.Helper()
	defer conn.Close()
	if _, err := io.WriteString(conn, commands+"quit\r\n"); err != nil {
		t.Error(err)
	}
	return string(freehold.Must(io.ReadAll(conn)))
}

func dial(t *testing.T, network, address string) net.Conn {
	t.Helper()
	conn, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestCacheFlags(t *testing.T) {
	missing, fifo := filepath.Join(t.TempDir(), "none"), filepath.Join(t.TempDir(), "fifo")
	filetest.Must(t, syscall.Mkfifo(fifo, 0o600))
	logged := new(strings.Builder)
	defer log.SetOutput(log.Writer())
	log.SetOutput(logged)
	for args, want := range map[string]string{
		"-m 64":                                  "-m 64: at least 256 KiB are needed; a unit may be missing, as in 64MiB",
		"-m 8MiB --max-item 8MiB":                "--max-item 8.00 MiB: at most",
		"--max-item 1":                           "--max-item 1 B: at least 1 KiB",
		"--buffers 1MiB":                         "--buffers 1.00 MiB: at least 2.02 MiB with --max-item 1.00 MiB",
		"-c 0":                                   "--max-conns 0: at least 1",
		"-m 7EiB":                                "-m 7.00 EiB, --buffers 224 PiB, --max-item 1.00 MiB, --max-conns 1024: more than",
		"-m 1MiB --max-item 1EiB":                "--max-item 1.00 EiB, --max-conns 1024: more than",
		"--buffers 7EiB":                         "--buffers 7.00 EiB, --max-item 1.00 MiB, --max-conns 1024: more than",
		"-c 9223372036854775807":                 "--max-conns 9223372036854775807: more than",
		"--disk x --disk-size 1MiB":              "--disk-size 1.00 MiB: from 8 MiB to 256 GiB",
		"--disk-size 1GiB":                       "--disk-size 1.00 GiB: it needs --disk",
		"--disk x -M":                            "--disk with -M, which evicts nothing",
		"-l 127.0.0.1:0 --disk " + missing:       "--disk: open " + missing,
		"--users=":                               "--users is empty",
		"--disk=":                                "--disk is empty",
		"--metrics nowhere":                      "--metrics: listen tcp",
		"--idle=-1s":                             "neither may be negative",
		"--write-timeout 0s":                     "and the latter not 0",
		"--snapshot-every 1s":                    "--snapshot-every 1s: it may not be negative, and needs --snapshot",
		"--snapshot x --snapshot-every=-1s":      "--snapshot-every -1s: it may not be negative",
		"--tls-cert x":                           "--tls-cert and --tls-key belong together",
		"--tls-cert " + missing + " --tls-key x": "--tls-cert: open",
		"-Y " + missing:                          "--users: open " + missing,
		"-Y /dev/null":                           "--users: /dev/null has no users",
		"-l nowhere":                             "-l: listen tcp",
		"-s " + missing + "/x":                   "-s: listen unix",
		"-l 127.0.0.1:0 --snapshot /dev/null":    "--snapshot: create /dev/null: not a regular file",
		"-l 127.0.0.1:0 --snapshot " + fifo:      "--snapshot: create " + fifo + ": not a regular file",
		"-l 127.0.0.1:0 --snapshot /dev/fd/1":    "--snapshot: create /dev/fd/1: not a regular file",
		"-l 127.0.0.1:0 --snapshot " + missing + "/x": "--snapshot: create " + missing + "/x: no such file",
	} {
		code, out, err := command(t.Context(), append([]string{"cache"}, strings.Fields(args)...)...)
		if code == 0 || out != "" || !strings.Contains(err, want) || strings.Count(err, "\n") != 1 || logged.Len() > 0 {
			t.Errorf("%s: exit code %d, %q, %q, log %q, want the line %q", args, code, out, err, logged, want)
		}
	}
}

// snapshotAfter returns the snapshot of a server that was stopped after some commands.
func snapshotAfter(t *testing.T, commands string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "snapshot")
	address, process := startCache(t, "--snapshot", file)
	say(t, dial(t, "tcp", address), commands)
	filetest.Must(t, process.Signal(syscall.SIGTERM))
	process.Wait()
	return file
}

// A server that is stopped writes its items, and begins with them again. One whose snapshot is
// damaged begins without it. One whose file is something else does not start, and leaves it.
func TestCacheSnapshot(t *testing.T) {
	file := snapshotAfter(t, "set a 7 0 2\r\nhi\r\nset b 0 1000 1\r\n1\r\n")
	address, process := startCache(t, "--snapshot", file)
	if got := say(t, dial(t, "tcp", address), "get a b\r\n"); got != "VALUE a 7 2\r\nhi\r\nVALUE b 0 1\r\n1\r\nEND\r\n" {
		t.Errorf("after a restart: %q", got)
	}
	process.Kill()
	process.Wait()
	filetest.Must(t, os.Truncate(file, 20))
	address, _ = startCache(t, "--snapshot", file)
	if got := say(t, dial(t, "tcp", address), "get a b\r\n"); got != "END\r\n" {
		t.Errorf("with a damaged snapshot: %q", got)
	}
	other := filepath.Join(t.TempDir(), "letter")
	filetest.Must(t, os.WriteFile(other, []byte("Dear reader,"), 0o600))
	code, _, err := command(t.Context(), "cache", "-l", "127.0.0.1:0", "--snapshot", other)
	if code == 0 || !strings.Contains(err, "not a snapshot of a cache of this kind; name another file") {
		t.Errorf("with a letter: exit code %d, %q", code, err)
	}
	if b := freehold.Must(os.ReadFile(other)); string(b) != "Dear reader," {
		t.Errorf("the letter is now %q", b)
	}
}

// A server with a disk finds items there that have no room in memory, also after a stop, and counts
// them under extstore's names.
func TestCacheDisk(t *testing.T) {
	const items = 200
	args := []string{"-m", "256KiB", "--max-item", "64KiB", "--disk", t.TempDir(), "--disk-size", "8MiB"}
	address, process := startCache(t, args...)
	value := strings.Repeat("v", 10_000)
	var sets, gets strings.Builder
	for i := range items {
		fmt.Fprintf(&sets, "set key%d %d 0 %d\r\n%s\r\n", i, i, len(value), value)
		fmt.Fprintf(&gets, "get key%d\r\n", i)
	}
	conn := dial(t, "tcp", address)
	if got := say(t, conn, sets.String()); got != strings.Repeat("STORED\r\n", items) {
		t.Errorf("sets: %.100q", got)
	}
	for _, least := range []int{items, items / 2} { // after the stop, those in memory are gone
		got := say(t, dial(t, "tcp", address), gets.String())
		if n := strings.Count(got, " 10000\r\n"+value+"\r\nEND\r\n"); n < least {
			t.Errorf("%d of %d items", n, items)
		}
		stats := say(t, dial(t, "tcp", address), "stats\r\n")
		if !regexp.MustCompile(`STAT get_extstore [1-9]`).MatchString(stats) || !strings.Contains(stats, "STAT extstore_off 0\r\n") {
			t.Errorf("%s", stats)
		}
		filetest.Must(t, process.Signal(syscall.SIGTERM))
		process.Wait()
		cmd := exec.Command(freehold.Must(os.Executable()), append([]string{"cache", "-l", "127.0.0.1:0"}, args...)...)
		var said *serverLog
		address, said = startServer(t, cmd)
		if process = cmd.Process; !regexp.MustCompile(`[1-9]\d* items on disk in `).MatchString(said.String()) {
			t.Error(said)
		}
	}
	if got := say(t, dial(t, "tcp", address), "flush_all\r\nget key0\r\nget key100\r\n"); got != "OK\r\nEND\r\nEND\r\n" {
		t.Errorf("after flush_all: %q", got)
	}
}

// Items on disk do not outlive a flush_all that was to come, whether a snapshot keeps its time or
// there is none.
func TestCacheDiskFlush(t *testing.T) {
	for _, test := range []struct {
		snapshot bool
		passed   bool // while the server does not run
		left     bool
	}{{snapshot: false}, {snapshot: true, left: true}, {snapshot: true, passed: true}} {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			args := []string{"-m", "256KiB", "--max-item", "64KiB", "--disk", t.TempDir(), "--disk-size", "8MiB"}
			file := filepath.Join(t.TempDir(), "snapshot")
			if test.snapshot {
				args = append(args, "--snapshot", file)
			}
			address, process := startCache(t, args...)
			var sets, gets strings.Builder
			for i := range 100 {
				fmt.Fprintf(&sets, "set key%d 0 0 10000\r\n%010000d\r\n", i, i)
				fmt.Fprintf(&gets, "mg key%d\r\n", i)
			}
			say(t, dial(t, "tcp", address), sets.String()+"flush_all 100000\r\n")
			filetest.Must(t, process.Signal(syscall.SIGTERM))
			process.Wait()
			if test.passed { // the file ends in the time
				b := freehold.Must(os.ReadFile(file))
				clear(b[len(b)-8:])
				filetest.Must(t, os.WriteFile(file, b, 0o600))
			}
			address, _ = startCache(t, args...)
			if got := strings.Contains(say(t, dial(t, "tcp", address), gets.String()), "HD"); got != test.left {
				t.Errorf("items are left: %t", got)
			}
		})
	}
}

// A snapshot has what clients were promised: a flush_all with a delay, marks of stale items and of
// those that a client has won. Only its owner may read it, whatever the mode of an older one.
func TestCacheSnapshotOfPromises(t *testing.T) {
	file := filepath.Join(t.TempDir(), "snapshot")
	address, process := startCache(t, "--snapshot", file)
	say(t, dial(t, "tcp", address), "set a 0 0 1\r\n1\r\nset b 0 0 1\r\n1\r\nmd a I\r\nmd b I\r\nmg b\r\nflush_all 100000\r\n")
	restart := func() {
		filetest.Must(t, process.Signal(syscall.SIGTERM))
		process.Wait()
		if mode := freehold.Must(os.Stat(file)).Mode(); mode != 0o600 {
			t.Errorf("a snapshot has the mode %v", mode)
		}
		filetest.Must(t, os.Chmod(file, 0o644))
		address, process = startCache(t, "--snapshot", file)
	}
	restart()
	if got := say(t, dial(t, "tcp", address), "mg a v\r\nmg b v\r\n"); got != "VA 1 X W\r\n1\r\nVA 1 Z X\r\n1\r\n" {
		t.Errorf("stale items after a restart: %q", got)
	}
	say(t, dial(t, "tcp", address), "flush_all 1\r\n")
	restart()
	await(t, "an order to flush that was given before a restart is carried out", func() bool {
		return say(t, dial(t, "tcp", address), "mg a\r\n") == "EN\r\n"
	})
}

// A server that was killed begins with the items of the last snapshot. Stats count the snapshots.
func TestCacheSnapshotEvery(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "snapshots")
	filetest.Must(t, os.Mkdir(dir, 0o755))
	file := filepath.Join(dir, "snapshot")
	address, process := startCache(t, "--snapshot", file, "--snapshot-every", "10ms")
	say(t, dial(t, "tcp", address), "set a 0 0 1\r\n1\r\n")
	await(t, "three snapshots are written after a set", func() bool { return statIs(t, address, "snapshots") >= 3 })
	process.Kill()
	process.Wait()
	address, _ = startCache(t, "--snapshot", file, "--snapshot-every", "10ms")
	if got := say(t, dial(t, "tcp", address), "mg a v\r\n"); got != "VA 1\r\n1\r\n" {
		t.Errorf("after a kill: %q", got)
	}
	await(t, "a snapshot is written", func() bool { return statIs(t, address, "snapshot_time") > 0 })
	filetest.Must(t, os.Rename(dir, dir+" moved")) // at once, though a snapshot is being written
	await(t, "a snapshot has failed", func() bool { return statIs(t, address, "snapshots_failed") > 0 })
	filetest.Must(t, os.Mkdir(dir, 0o755))
	written := statIs(t, address, "snapshots")
	await(t, "the next one is written", func() bool { return statIs(t, address, "snapshots") > written })
}

// halves is a conversation with a server in this process.
type halves struct {
	io.Reader
	io.Writer
}

// newSnapshots returns the snapshots of a server in this process.
func newSnapshots(t *testing.T) *snapshots {
	items := cache.New(freehold.Pages(), &cache.Options{MaxBytes: 1 << 20, Access: true})
	t.Cleanup(items.Close)
	server := memcached.New(items, memcached.Options{MaxBytes: 1 << 20, MaxItem: 1 << 16, Heap: freehold.Pages(), Buffers: memcached.LeastBuffers(1 << 16), Write: time.Minute})
	return &snapshots{items: items, server: server, log: log.New(io.Discard, "", 0), loaded: make(chan struct{})}
}

// loadHalf begins to load a snapshot from a pipe that has the first half of it.
func (s *snapshots) loadHalf(t *testing.T, whole *bytes.Buffer) *os.File {
	s.path = filepath.Join(t.TempDir(), "pipe")
	filetest.Must(t, syscall.Mkfifo(s.path, 0o600))
	write := make(chan *os.File)
	go func() {
		f := freehold.Must(os.OpenFile(s.path, os.O_WRONLY, 0))
		f.Write(whole.Next(whole.Len() / 2)) // the head, and a part of the items
		write <- f
	}()
	filetest.Must(t, s.load())
	return <-write
}

// talk returns the server's replies to commands.
func (s *snapshots) talk(t *testing.T, commands string) string {
	var replies strings.Builder
	filetest.Must(t, s.server.Session(halves{strings.NewReader(commands), &replies}))
	return replies.String()
}

// A server that loads a snapshot serves meanwhile. Items that it has not loaded are misses. What is
// written wins over the snapshot, which is replaced by none that lacks items. A pipe holds the
// snapshot back until the test has written.
func TestCacheServesWhileItLoads(t *testing.T) {
	const written = "a b c d e f g h" // of the others, a few have hashes like theirs, and are lost
	var others, misses strings.Builder
	for i := range 20 {
		fmt.Fprintf(&others, " x%d y%d", i, i)
		fmt.Fprintf(&misses, "incr x%d 1\r\ntouch y%d 9\r\n", i, i)
	}
	before := newSnapshots(t)
	for _, key := range strings.Fields(written + others.String()) {
		before.talk(t, "set "+key+" 0 0 3\r\nold\r\n")
	}
	var whole bytes.Buffer
	filetest.Must(t, before.items.Snapshot(&whole))

	s := newSnapshots(t)
	f := s.loadHalf(t, &whole)
	if got, want := s.talk(t, "get a b\r\nset a 0 0 3\r\nnew\r\ndelete b\r\nmd c\r\nadd d 0 0 3\r\nnew\r\nmd e I\r\ntouch f -1\r\ngat -1 g\r\nmg h T-1\r\n"+misses.String()),
		"END\r\nSTORED\r\nNOT_FOUND\r\nNF\r\nSTORED\r\nNF\r\nNOT_FOUND\r\nEND\r\nEN\r\n"+strings.Repeat("NOT_FOUND\r\n", 40); got != want {
		t.Errorf("while it loads: %q, want %q", got, want)
	}
	if got := s.talk(t, "stats\r\n"); !strings.Contains(got, "STAT snapshot_loading 1\r\n") {
		t.Errorf("while it loads: %q", got)
	}
	file := filepath.Join(t.TempDir(), "snapshot")
	s.path = file // a regular one
	saved := make(chan error)
	go func() { saved <- s.save() }()
	freehold.Must(f.Write(whole.Bytes()))
	filetest.Must(t, f.Close())
	filetest.Must(t, <-saved)
	check := func(s *snapshots) {
		t.Helper()
		const want = "VALUE a 0 3\r\nnew\r\nVALUE d 0 3\r\nnew\r\nEND\r\n"
		if got := s.talk(t, "get "+written+"\r\n"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := s.talk(t, "get"+others.String()+"\r\n"); strings.Count(got, " 0 3\r\nold\r\n") < 20 {
			t.Errorf("of 40 others that no client has changed: %q", got)
		}
	}
	check(s)
	again := newSnapshots(t)
	again.path = file
	filetest.Must(t, again.load())
	<-again.loaded
	check(again)
	if got := again.talk(t, "stats\r\n"); !strings.Contains(got, "STAT snapshot_loading 0\r\n") {
		t.Errorf("once it is loaded: %q", got)
	}
}

// A snapshot that ends early takes nothing from clients who have written meanwhile, and the log says
// so.
func TestCacheSnapshotEndsEarly(t *testing.T) {
	before := newSnapshots(t)
	value := strings.Repeat("x", 50_000)
	for key := range 10 {
		before.talk(t, fmt.Sprintf("set %d 0 0 %d\r\n%s\r\n", key, len(value), value))
	}
	var whole bytes.Buffer
	filetest.Must(t, before.items.Snapshot(&whole))
	s, logged := newSnapshots(t), new(strings.Builder)
	s.log.SetOutput(logged)
	f := s.loadHalf(t, &whole)
	await(t, "a part is loaded", func() bool { return s.items.Len() > 0 })
	s.talk(t, "set a 0 0 3\r\nnew\r\n")
	filetest.Must(t, f.Close())
	<-s.loaded
	if got := s.talk(t, "get a\r\n"); got != "VALUE a 0 3\r\nnew\r\nEND\r\n" {
		t.Errorf("%q", got)
	}
	want := fmt.Sprintf("drops the items of the snapshot, and goes on with %s: restore %s: %v\n",
		cli.Plural(s.items.Len(), "item"), s.path, cache.ErrTruncated) // another item's hash may be like a's
	if logged.String() != want {
		t.Errorf("log %q, want %q", logged, want)
	}
}

// A flush_all that was due before the server began empties the snapshot, and not what clients set.
func TestCacheFlushedWhileItWasDown(t *testing.T) {
	file := snapshotAfter(t, "set a 0 0 1\r\n1\r\nflush_all 100000\r\n")
	text := freehold.Must(os.ReadFile(file))
	filetest.Must(t, os.WriteFile(file, binary.LittleEndian.AppendUint64(text[:len(text)-8], uint64(time.Now().UnixNano())), 0o600))
	address, _ := startCache(t, "--snapshot", file)
	if got := say(t, dial(t, "tcp", address), "get a\r\nset a 0 0 1\r\n2\r\nget a\r\n"); got != "END\r\nSTORED\r\nVALUE a 0 1\r\n2\r\nEND\r\n" {
		t.Errorf("%q", got)
	}
}

// statIs returns a figure of stats.
func statIs(t *testing.T, address, name string) (n int) {
	t.Helper()
	_, after, found := strings.Cut(say(t, dial(t, "tcp", address), "stats\r\n"), "STAT "+name+" ")
	if fmt.Sscan(after, &n); !found {
		t.Errorf("stats without %s", name)
	}
	return n
}

// A second signal of any kind does not lose the snapshot; the server logs it. A third ends the
// server at once.
func TestCacheSignals(t *testing.T) {
	for _, tt := range []struct {
		name    string
		signals []os.Signal
		code    int
	}{
		{"term", []os.Signal{syscall.SIGTERM, syscall.SIGTERM}, 0},
		{"hup", []os.Signal{syscall.SIGHUP, syscall.SIGINT}, 0},
		{"three", []os.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGTERM}, 130},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "snapshot")
			cmd := exec.Command(freehold.Must(os.Executable()), "cache", "-l", "127.0.0.1:0", "--snapshot", file)
			cmd.Env = append(os.Environ(), isPatient+"=1")
			address, said := startServer(t, cmd)
			value := strings.Repeat("x", 1_000_000)
			say(t, dial(t, "tcp", address), fmt.Sprintf("set a 0 0 %d\r\n%s\r\n", len(value), value))
			stuck := dial(t, "tcp", address) // for which the server waits
			defer stuck.Close()
			fmt.Fprint(stuck, strings.Repeat("get a\r\n", 100))
			stuck.Read(make([]byte, 1))
			for i, sig := range tt.signals {
				filetest.Must(t, cmd.Process.Signal(sig))
				await(t, "the server has seen a signal", func() bool {
					if i > 0 {
						return strings.Contains(said.String(), "another signal ends this at once")
					}
					conn, err := net.Dial("tcp", address)
					if err == nil {
						conn.Close()
					}
					return err != nil
				})
			}
			if tt.code == 0 {
				stuck.Close()
			}
			cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != tt.code {
				t.Errorf("exit code %d, want %d: %s", code, tt.code, said)
			}
			if _, err := os.Stat(file); (err == nil) != (tt.code == 0) {
				t.Errorf("the snapshot: %v", err)
			}
			if strings.HasSuffix(said.String(), " to "+file+"\nfreehold cache: stopped\n") != (tt.code == 0) {
				t.Errorf("the server stops once its snapshot is written, and says: %s", said)
			}
		})
	}
}

// A socket file that a server left when it was killed is replaced; one that is served is not.
func TestCacheUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	_, process := startCache(t, "-s", path)
	if got := say(t, dial(t, "unix", path), "mn\r\n"); got != "MN\r\n" {
		t.Errorf("%q", got)
	}
	if code, _, err := command(t.Context(), "cache", "-s", path); code == 0 || !strings.Contains(err, "address already in use") {
		t.Errorf("a second server at a socket: exit code %d, %q", code, err)
	}
	process.Kill()
	process.Wait()
	startCache(t, "-s", path)
	if got := say(t, dial(t, "unix", path), "mn\r\n"); got != "MN\r\n" {
		t.Errorf("after a kill: %q", got)
	}
}

// systemd passes sockets as descriptors from 3 on.
func TestCacheSocketActivation(t *testing.T) {
	l := freehold.Must(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	file := freehold.Must(l.(*net.TCPListener).File())
	defer file.Close()
	cmd := exec.Command("sh", "-c", `LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" cache`, freehold.Must(os.Executable()))
	cmd.ExtraFiles = []*os.File{file}
	filetest.Must(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if got := say(t, dial(t, "tcp", l.Addr().String()), "mn\r\n"); got != "MN\r\n" {
		t.Errorf("%q", got)
	}
}

// Clients parse the version as three numbers, npm's memcached with this expression.
func TestCacheVersion(t *testing.T) {
	address, _ := startCache(t)
	got := say(t, dial(t, "tcp", address), "version\r\nstats\r\n")
	line, stats, _ := strings.Cut(got, "\r\n")
	if !regexp.MustCompile(`^VERSION (\d+)(?:\.)(\d+)(?:\.)(\d+)$`).MatchString(line) {
		t.Errorf("%q", line)
	}
	if !strings.Contains(stats, "STAT freehold_version freehold ") {
		t.Errorf("stats without the server's own version: %q", stats)
	}
}

func TestCacheMetrics(t *testing.T) {
	_, said := startServer(t, exec.Command(freehold.Must(os.Executable()), "cache", "-l", "127.0.0.1:0", "--metrics", "127.0.0.1:0"))
	for _, page := range []string{"/debug/freehold?format=json", "/debug/vars"} {
		answer, err := http.Get("http://" + said.metrics + page)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if !strings.Contains(string(body), `"cache"`) {
			t.Errorf("%s has no heap of the cache: %.200q", page, body)
		}
	}
}

// Clients with TLS, without TLS, and without a certificate.
func TestCacheTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	pool := writeCertificate(t, cert, key)
	address, _ := startCache(t, "--tls-cert", cert, "--tls-key", key)
	if got := say(t, dialTLS(t, address, pool), "mn\r\n"); got != "MN\r\n" {
		t.Errorf("%q", got)
	}
	plain := dial(t, "tcp", address)
	defer plain.Close()
	fmt.Fprint(plain, "get a\r\nmn\r\n") // longer than the head of a TLS record
	if got, _ := io.ReadAll(plain); strings.Contains(string(got), "MN") {
		t.Errorf("a client without TLS got %q", got)
	}
	only, _ := startCache(t, "--tls-cert", cert, "--tls-key", key, "--tls-ca", cert)
	conn := dialTLS(t, only, pool)
	defer conn.Close()
	fmt.Fprint(conn, "mn\r\n")
	if got, err := io.ReadAll(conn); err == nil || len(got) > 0 {
		t.Errorf("a client without a certificate got %q, %v", got, err)
	}
}

// SIGTERM ends a server in order while clients are connected.
func TestCacheStops(t *testing.T) {
	address, process := startCache(t)
	conn := dial(t, "tcp", address)
	defer conn.Close()
	fmt.Fprint(conn, "set a 0 0 10\r\nhalf")
	filetest.Must(t, process.Signal(syscall.SIGTERM))
	state, err := process.Wait()
	if err != nil || state.ExitCode() != 0 {
		t.Errorf("%v, %v", state, err)
	}
	if got, _ := io.ReadAll(conn); len(got) > 0 { // its end is a reset if the server had not read all
		t.Errorf("a client in the middle of a command got %q", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := new(net.Dialer).DialContext(ctx, "tcp", address); err == nil {
		t.Error("a server that has stopped accepts connections")
	}
}

// With -A, any client may stop the server, which then writes its snapshot.
func TestCacheShutdownCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "snapshot")
	address, process := startCache(t, "-A", "--snapshot", file)
	if got := say(t, dial(t, "tcp", address), "set a 0 0 1\r\n1\r\nshutdown graceful\r\nmn\r\n"); got != "STORED\r\n" {
		t.Errorf("%q", got)
	}
	state, err := process.Wait()
	if err != nil || state.ExitCode() != 0 {
		t.Errorf("%v, %v", state, err)
	}
	again, _ := startCache(t, "--snapshot", file)
	if got := say(t, dial(t, "tcp", again), "get a\r\n"); got != "VALUE a 0 1\r\n1\r\nEND\r\n" {
		t.Errorf("after a restart: %q", got)
	}
}

// await waits until is returns true. A machine may be as slow as the -timeout of the tests allows.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for began := time.Now(); !is(); time.Sleep(100 * time.Millisecond) {
		if end, limited := t.Deadline(); limited && time.Until(end) < 5*time.Second {
			t.Fatalf("after %v it is not so that %s", time.Since(began), what)
		}
	}
}

// The log says how and for whom an address is served.
func TestTerms(t *testing.T) {
	protected := cacheCommand{Memory: 4 << 30, Users: "/users", Disk: "/ssd", DiskSize: 200 << 30, tlsFlags: tlsFlags{TLSCert: "/cert"}}
	for want, got := range map[string]string{
		"(tcp, without TLS) for everybody, in at most 64.0 MiB of memory":                       (&cacheCommand{Memory: 64 << 20}).terms("tcp"),
		"(unix) for everybody, in at most 64.0 MiB of memory":                                   (&cacheCommand{Memory: 64 << 20}).terms("unix"),
		"(tcp, TLS) for the users in /users, in at most 4.00 GiB of memory and 200 GiB on disk": protected.terms("tcp"),
		"(unix) for the users in /users, in at most 4.00 GiB of memory and 200 GiB on disk":     protected.terms("unix"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
