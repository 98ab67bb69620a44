// Strangers: clients that try to hold as much of a server's memory as they can, against the
// documented size.

//go:build linux

package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

// documented is what docs/cache-server.md says of a server's memory, in bytes. perConn is 64 KiB,
// and with TLS as much again.
func documented(m, buffers, conns, perConn int) int {
	return m/20*21 + buffers + conns*perConn + 64<<20
}

// confined makes a command one that runs in a control group with a limit, and returns how often the
// kernel has killed there. Without the right to make one, the command runs as it is.
func confined(t *testing.T, cmd *exec.Cmd, limit int) (kills func() string) {
	t.Helper()
	for _, v := range []struct{ top, limit, events string }{
		{"/sys/fs/cgroup", "memory.max", "memory.events"}, {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.oom_control"},
	} {
		group := filepath.Join(v.top, fmt.Sprint("freehold-test-", os.Getpid()))
		if os.Mkdir(group, 0o755) != nil {
			continue
		}
		limitFile, err := os.OpenFile(filepath.Join(group, v.limit), os.O_WRONLY, 0) // of the kernel, if this is a group
		if err == nil {
			_, err = fmt.Fprint(limitFile, limit)
			limitFile.Close()
		}
		if err != nil {
			os.Remove(group)
			continue
		}
		t.Cleanup(func() { // after the process, which is cleaned up before
			for range 100 {
				if os.Remove(group) == nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
		cmd.Path = "/bin/sh"
		cmd.Args = append([]string{"sh", "-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, group}, cmd.Args...)
		return func() string { b, _ := os.ReadFile(filepath.Join(group, v.events)); return string(b) }
	}
	t.Log("no control group: the server's peak is checked alone")
	return func() string { return "" }
}

// peakOf returns the most that a process had resident, in bytes.
func peakOf(t *testing.T, process *os.Process) (bytes int) {
	t.Helper()
	status := string(freehold.Must(os.ReadFile(fmt.Sprintf("/proc/%d/status", process.Pid))))
	_, after, _ := strings.Cut(status, "VmHWM:")
	fmt.Sscan(after, &bytes)
	return bytes << 10
}

// A deafConn writes, and never returns from Read before the test ends.
type deafConn struct {
	net.Conn
	ended <-chan struct{}
}

func (c deafConn) Read([]byte) (int, error) {
	<-c.ended
	return 0, io.EOF
}

// All kinds of slow clients together neither kill a server in a control group of the documented
// size, nor keep others from being served.
func TestStrangers(t *testing.T) {
	t.Run("plain", func(t *testing.T) {
		strangers(t, 64<<10, func(t *testing.T, address string) net.Conn { return dial(t, "tcp", address) })
	})
	t.Run("TLS", func(t *testing.T) {
		cert, key := filepath.Join(t.TempDir(), "cert"), filepath.Join(t.TempDir(), "key")
		pool := writeCertificate(t, cert, key)
		strangers(t, 128<<10, func(t *testing.T, address string) net.Conn { return dialTLS(t, address, pool) }, "--tls-cert", cert, "--tls-key", key)
	})
}

// strangers is TestStrangers of clients that connect by dialing, at perConn bytes each.
func strangers(t *testing.T, perConn int, dialing func(t *testing.T, address string) net.Conn, flags ...string) {
	const m, buffers, conns = 32 << 20, 16 << 20, 800
	limit := documented(m, buffers, conns, perConn)
	cmd := exec.Command(freehold.Must(os.Executable()), append([]string{"cache", "-l", "127.0.0.1:0", "-m", fmt.Sprint(m), "-c", fmt.Sprint(conns)}, flags...)...)
	kills := confined(t, cmd, limit)
	address, said := startServer(t, cmd)
	value := strings.Repeat("x", 1_000_000)
	set := func(key string) string { return fmt.Sprintf("set %s 0 0 %d\r\n%s\r\n", key, len(value), value) }
	good := dialing(t, address)
	defer good.Close()
	replies := bufio.NewReader(good)
	ask := func(command, want string) {
		t.Helper()
		good.SetDeadline(time.Now().Add(2 * time.Minute))
		io.WriteString(good, command)
		got := make([]byte, len(want))
		if _, err := io.ReadFull(replies, got); string(got) != want {
			rest, _ := replies.Peek(min(40, replies.Buffered()))
			t.Fatalf("%.40q: %.40q%s, %v; the server says %s, and the kernel %s", command, got, rest, err, said, kills())
		}
	}
	for i := range 60 {
		ask(set(fmt.Sprint("key", i%20)), "STORED\r\n")
	}
	kinds := []string{
		set("slow")[:len(value)],            // an upload that never ends
		strings.Repeat("get key19\r\n", 20), // readers that do not read
		"get " + strings.Repeat("key19 ", 100) + "\r\n",
		"get " + strings.Repeat("key19 ", 100_000), // a line that never ends
		strings.Repeat("gat 0 key19\r\n", 20),
		strings.Repeat("stats\r\n", 2000),
		strings.Repeat("stats conns\r\n", 20),
		"lru_crawler metadump all\r\n",
		"ms half 1000 T0\r\nxyz",
		"watch fetchers mutations evictions\r\n",
		strings.Repeat("append key18 0 0 10\r\n0123456789\r\n", 300),
		strings.Repeat("mg key19 v\r\n", 100),
	}
	for i := range conns - 1 {
		kind := i % (len(kinds) + 2)
		if i < 161 {
			kind = 0
		}
		if kind >= len(kinds) { // silent, or in the middle of a handshake
			conn := dial(t, "tcp", address)
			defer conn.Close()
			if kind > len(kinds) {
				go tls.Client(deafConn{conn, t.Context().Done()}, &tls.Config{InsecureSkipVerify: true}).Handshake()
			}
			continue
		}
		conn := dialing(t, address)
		defer conn.Close()
		go io.WriteString(conn, kinds[kind]) // which may block for ever
	}
	for i := range 8 {
		key := fmt.Sprint("good", i%5)
		ask(fmt.Sprintf("set small%d 0 0 1\r\n1\r\n", i), "STORED\r\n")
		ask(fmt.Sprintf("get small%d\r\n", i), fmt.Sprintf("VALUE small%d 0 1\r\n1\r\nEND\r\n", i))
		ask(set(key), "")
		line, _ := replies.ReadString('\n')
		if line != "STORED\r\n" && line != "SERVER_ERROR out of memory storing object\r\n" { // refused if the cache has shrunk
			t.Fatalf("set: %q; the server says %s", line, said)
		}
		ask("mg "+key+" v\r\n", "")
		line, _ = replies.ReadString('\n')
		if line == fmt.Sprintf("VA %d\r\n", len(value)) {
			replies.Discard(len(value) + 2)
		} else if line != "EN\r\n" { // the cache may have shrunk, and dropped it
			t.Fatalf("mg: %q; the server says %s", line, said)
		}
	}
	peak := peakOf(t, cmd.Process)
	t.Logf("at most %d MiB of %d", peak>>20, limit>>20)
	if peak > limit {
		t.Errorf("at most %d MiB resident, and %d are documented", peak>>20, limit>>20)
	}
	filetest.Must(t, cmd.Process.Signal(os.Interrupt))
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, said)
	}
}

// Large values of many sizes, whose memory does not fit the next ones, keep a server within its
// documented size.
func TestResidentOfLargeValues(t *testing.T) {
	const m, sets = 64 << 20, 1000
	address, process := startCache(t, "-m", fmt.Sprint(m))
	conn := dial(t, "tcp", address)
	defer conn.Close()
	value, sizes := make([]byte, 900_000), rand.New(rand.NewPCG(1, 2))
	for i := range sets {
		size := 20_000 + sizes.IntN(len(value)-20_000)
		fmt.Fprintf(conn, "set key%d 0 0 %d noreply\r\n%s\r\n", i%500, size, value[:size])
	}
	if got := say(t, conn, "mn\r\n"); got != "MN\r\n" {
		t.Errorf("%q", got)
	}
	peak, limit := peakOf(t, process), documented(m, 0, 0, 0) // the client has next to no buffers
	t.Logf("at most %d MiB of %d", peak>>20, limit>>20)
	if peak > limit {
		t.Errorf("at most %d MiB resident, and %d are documented", peak>>20, limit>>20)
	}
}
