// Full disks, kills, and clients that misbehave, of the process that freehold cache is.

//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cache"
	"github.com/freehold-go/freehold/internal/test/faults"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

// snapshotItems is how many items the snapshots of these tests have, of about 1 KiB each.
const snapshotItems = 3000

// store stores all items with a digit, and returns when they are stored.
func store(t *testing.T, address string, digit int) {
	t.Helper()
	var b strings.Builder
	for i := range snapshotItems {
		fmt.Fprintf(&b, "set key%d 0 0 1000 noreply\r\n%s\r\n", i, strings.Repeat(fmt.Sprint(digit), 1000))
	}
	if got := say(t, dial(t, "tcp", address), b.String()+"mn\r\n"); got != "MN\r\n" {
		t.Fatalf("%q", got)
	}
}

// stored returns the digit that all items have.
func stored(t *testing.T, address string) (digit int) {
	t.Helper()
	var ask, want strings.Builder
	for i := range snapshotItems {
		fmt.Fprintf(&ask, "get key%d\r\n", i)
	}
	got := say(t, dial(t, "tcp", address), ask.String())
	fmt.Sscanf(got, "VALUE key0 0 1000\r\n%1d", &digit)
	for i := range snapshotItems {
		fmt.Fprintf(&want, "VALUE key%d 0 1000\r\n%s\r\nEND\r\n", i, strings.Repeat(fmt.Sprint(digit), 1000))
	}
	faults.Same(t, "the items", []byte(got), []byte(want.String()))
	return digit
}

// Whenever a server is killed while it writes its snapshot, the next one has all items of that
// snapshot, or all of the one before.
func TestKillsOfASnapshot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "snapshot")
	address, process := startCache(t, "--snapshot", file)
	store(t, address, 0)
	filetest.Must(t, process.Signal(syscall.SIGTERM))
	process.Wait()
	had, replaced := 0, 0
	for n := range faults.Kills() {
		r := faults.Random(n)
		address, process := startCache(t, "--snapshot", file)
		if got := stored(t, address); got != had && got != n%10 {
			t.Fatalf("kill %d: items %d, want %d or %d", n, got, had, n%10)
		} else if got != had {
			had = got
			replaced++
		}
		store(t, address, (n+1)%10)
		filetest.Must(t, process.Signal(syscall.SIGTERM))
		time.Sleep(time.Duration(r.IntN(1<<(8+r.IntN(12)))) * time.Microsecond)
		process.Kill()
		process.Wait()
		if t.Failed() {
			t.Fatalf("kill %d: -seed %d", n, faults.Seed())
		}
		faults.Show("kills", n+1, faults.Kills())
	}
	t.Logf("%d kills, of which %d came after the snapshot", faults.Kills(), replaced)
}

// A server that has no room for its snapshot says so, fails, and leaves the old one.
func TestSnapshotFillsADisk(t *testing.T) {
	if faults.Isolated(t) {
		fillBySnapshots(t, faults.NewDisk(t))
	}
}

func TestSnapshotFillsUpToAFileSize(t *testing.T) {
	if faults.Restricted(t) {
		fillBySnapshots(t, faults.NewSizeLimit(t))
	}
}

func snapshotOfNothing(t *testing.T) []byte {
	c := cache.New(freehold.Pages(), &cache.Options{MaxBytes: 8 << 20})
	defer c.Close()
	var b bytes.Buffer
	filetest.Must(t, c.Snapshot(&b))
	return b.Bytes()
}

func fillBySnapshots(t *testing.T, room *faults.Room) {
	file := filepath.Join(room.Dir, "snapshot")
	for n := range faults.Fills() / 5 {
		r := faults.Random(n)
		room.Limit(t, 1<<30)
		old := append(snapshotOfNothing(t), faults.Noise()[:5000]...)
		filetest.Must(t, os.WriteFile(file, old, 0o600))
		room.Limit(t, 16<<10+r.IntN(snapshotItems*1000))
		cmd := faults.Self(t, "cache", "-l", "127.0.0.1:0", "--snapshot", file)
		address, said := startServer(t, cmd)
		store(t, address, n%10)
		filetest.Must(t, cmd.Process.Signal(syscall.SIGTERM))
		err := cmd.Wait()
		if err == nil || strings.Count(said.String(), "--snapshot") != 1 || !strings.Contains(said.String(), room.Full.Error()) {
			t.Errorf("%v: %q", err, said.String())
		}
		wantFile(t, file, old)
		room.WantEmpty(t, "snapshot")
		if t.Failed() {
			t.Fatalf("fill %d: -seed %d", n, faults.Seed())
		}
	}
}

// A client that says that it will send no more gets all of its replies.
func TestCacheHalfClosed(t *testing.T) {
	address, _ := startCache(t)
	conn := dial(t, "tcp", address)
	defer conn.Close()
	fmt.Fprintf(conn, "set a 0 0 100000\r\n%s\r\n%s", strings.Repeat("x", 100_000), strings.Repeat("get a\r\nmg a\r\n", 100))
	filetest.Must(t, conn.(*net.TCPConn).CloseWrite())
	const want = len("STORED\r\n") + 100*(len("VALUE a 0 100000\r\n\r\nEND\r\nHD\r\n")+100_000)
	if got, err := io.ReadAll(conn); len(got) != want || err != nil {
		t.Errorf("%d bytes of replies, want %d, %v", len(got), want, err)
	}
}

// Clients that announce 60 MB and send nothing cost nothing, and neither does one that announces
// more than the limit.
func TestPromisesOfClients(t *testing.T) {
	t.Setenv("GOMAXPROCS", "2") // with more there are more shards, which are too small
	address, process := startCache(t, "-m", "8GiB", "--max-item", "64MiB", "-c", "1000")
	const clients = 500
	before := 0
	for i := range clients {
		conn := dial(t, "tcp", address)
		defer conn.Close()
		fmt.Fprint(conn, "mn\r\nset a 0 0 60000000\r\nx")
		if i%2 == 0 {
			fmt.Fprint(conn, "y")
		}
		freehold.Must(io.ReadFull(conn, make([]byte, len("MN\r\n"))))
		if i == 0 {
			before = residentOf(t, process)
		}
	}
	if n := (residentOf(t, process) - before) / (clients - 1); n > 64<<10 {
		t.Errorf("%d bytes for a client that has sent three", n)
	}
	conn := dial(t, "tcp", address)
	defer conn.Close()
	fmt.Fprint(conn, "set a 0 0 1073741824\r\n")
	refused := make([]byte, len("SERVER_ERROR object too large for cache\r\n"))
	if _, err := io.ReadFull(conn, refused); err != nil || string(refused) != "SERVER_ERROR object too large for cache\r\n" {
		t.Errorf("1 GiB: %q, %v", refused, err)
	}
}

// residentOf returns the resident bytes of a process.
func residentOf(t *testing.T, process *os.Process) (bytes int) {
	t.Helper()
	var size, resident int
	fmt.Sscan(string(freehold.Must(os.ReadFile(fmt.Sprintf("/proc/%d/statm", process.Pid)))), &size, &resident)
	return resident * os.Getpagesize()
}

// A server that stops while many clients send ends in order, with all that it has confirmed in its
// snapshot.
func TestCacheStopsUnderLoad(t *testing.T) {
	file := filepath.Join(t.TempDir(), "snapshot")
	address, process := startCache(t, "--snapshot", file)
	const clients = 20
	confirmed := make(chan [2]int, clients) // by each client, its first and its last
	for c := range clients {
		conn := dial(t, "tcp", address)
		defer conn.Close()
		go func() {
			reply := make([]byte, len("STORED\r\n"))
			for i := 0; ; i++ {
				fmt.Fprintf(conn, "set last%d 0 0 10\r\n%010d\r\n", c, i)
				if _, err := io.ReadFull(conn, reply); err != nil {
					confirmed <- [2]int{c, i - 1}
					return
				}
				if i == 0 {
					confirmed <- [2]int{c, i}
				}
			}
		}()
	}
	for range clients {
		<-confirmed // each has stored something
	}
	filetest.Must(t, process.Signal(syscall.SIGTERM))
	if state, err := process.Wait(); err != nil || state.ExitCode() != 0 {
		t.Errorf("%v, %v", state, err)
	}
	address, _ = startCache(t, "--snapshot", file)
	for range clients {
		last := <-confirmed
		got := say(t, dial(t, "tcp", address), fmt.Sprintf("get last%d\r\n", last[0]))
		var i int
		if _, err := fmt.Sscanf(got, fmt.Sprintf("VALUE last%d 0 10\r\n%%d", last[0]), &i); err != nil || i < last[1] {
			t.Errorf("client %d: %q after a restart, and %d was confirmed", last[0], got, last[1])
		}
	}
}

// A server that was started with SIGINT or SIGHUP ignored, as in the background of a script or by
// nohup, ignores them.
func TestCacheIgnoresWhatItsParentDoes(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"INT": syscall.SIGINT, "HUP": syscall.SIGHUP} {
		cmd := exec.Command("sh", "-c", `trap "" `+name+`; exec "$0" cache -l 127.0.0.1:0`, freehold.Must(os.Executable()))
		startServer(t, cmd)
		status := string(freehold.Must(os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))))
		_, after, _ := strings.Cut(status, "SigIgn:")
		var ignored uint64
		if fmt.Sscanf(after, "%x", &ignored); ignored>>(sig-1)&1 == 0 {
			t.Errorf("SIG%s is not ignored: %x", name, ignored)
		}
	}
}
