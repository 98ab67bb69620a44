//go:build linux

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

// Three servers behind nutcracker, which spreads keys by ketama. One is killed: its keys are gone
// and the others' are not, and its keys can be stored elsewhere. It comes back: it is used again.
func TestConformanceNutcracker(t *testing.T) {
	external(t, "apt-get", "dpkg")
	dir := fetchDebian(t, "nutcracker", "libyaml-0-2")
	addresses := make([]string, 3)
	processes := make([]*os.Process, 3)
	for i := range addresses {
		addresses[i], processes[i] = startCache(t)
	}
	proxy := startNutcracker(t, dir, addresses)
	const keys = 300
	for i := range keys {
		if got := through(t, proxy, fmt.Sprintf("set key%d 0 0 1\r\n1\r\n", i)); got != "STORED" {
			t.Fatalf("set of key%d: %q", i, got)
		}
	}
	lost := itemsOf(t, addresses[0])
	if lost == 0 || lost == keys {
		t.Fatalf("%d of %d keys are on the first server", lost, keys)
	}
	processes[0].Kill()
	processes[0].Wait()
	// An ejected server answers with an error twice, and is left out then.
	await(t, "the dead server is ejected", func() bool { return found(t, proxy, keys) == keys-lost && errorsOf(t, proxy, keys) == 0 })
	for i := range keys {
		if got := through(t, proxy, fmt.Sprintf("set key%d 0 0 1\r\n1\r\n", i)); got != "STORED" && !strings.HasPrefix(got, "SERVER_ERROR") {
			t.Errorf("set of key%d without a server: %q", i, got)
		}
	}
	restarted(t, addresses[0])
	await(t, "the server is used again", func() bool {
		for i := range keys {
			through(t, proxy, fmt.Sprintf("set key%d 0 0 1\r\n1\r\n", i))
		}
		return itemsOf(t, addresses[0]) == lost
	})
}

// startNutcracker returns the address of a proxy before the servers.
func startNutcracker(t *testing.T, dir string, servers []string) string {
	t.Helper()
	l := freehold.Must(net.Listen("tcp", "127.0.0.1:0"))
	proxy := l.Addr().String()
	l.Close()
	conf := fmt.Sprintf(`cache:
  listen: %s
  hash: fnv1a_64
  distribution: ketama
  auto_eject_hosts: true
  server_failure_limit: 1
  server_retry_timeout: 2000
  timeout: 1000
  servers:
`, proxy)
	for i, s := range servers {
		conf += fmt.Sprintf("   - %s:1 server%d\n", s, i)
	}
	file := filepath.Join(dir, "nutcracker.yml")
	filetest.Must(t, os.WriteFile(file, []byte(conf), 0o644))
	stats := freehold.Must(net.Listen("tcp", "127.0.0.1:0"))
	_, statsPort, _ := net.SplitHostPort(stats.Addr().String())
	stats.Close()
	cmd := exec.Command(filepath.Join(dir, "usr/sbin/nutcracker"), "-c", file, "-s", statsPort, "-o", filepath.Join(dir, "nutcracker.log"))
	cmd.Env = append(os.Environ(), librariesOf(dir))
	filetest.Must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	await(t, "nutcracker listens", func() bool {
		conn, err := net.Dial("tcp", proxy)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return proxy
}

// restarted starts a server at the address of one that was killed.
func restarted(t *testing.T, address string) {
	t.Helper()
	cmd := exec.Command(freehold.Must(os.Executable()), "cache", "-l", address)
	filetest.Must(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	await(t, "the server is back", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
}

// through returns the first line of the reply to a command.
func through(t *testing.T, address, command string) string {
	t.Helper()
	line, _, _ := strings.Cut(say(t, dial(t, "tcp", address), command), "\r\n")
	return line
}

// found returns how many keys can be read, and errorsOf how many reads are answered by an error.
func found(t *testing.T, proxy string, keys int) int { return replies(t, proxy, keys, "VALUE") }

func errorsOf(t *testing.T, proxy string, keys int) int {
	return replies(t, proxy, keys, "SERVER_ERROR")
}

func replies(t *testing.T, proxy string, keys int, prefix string) (n int) {
	for i := range keys {
		if strings.HasPrefix(through(t, proxy, fmt.Sprintf("get key%d\r\n", i)), prefix) {
			n++
		}
	}
	return n
}

// itemsOf returns how many items a server has.
func itemsOf(t *testing.T, address string) (n int) {
	t.Helper()
	_, after, _ := strings.Cut(say(t, dial(t, "tcp", address), "stats\r\n"), "STAT curr_items ")
	fmt.Sscan(after, &n)
	return n
}
