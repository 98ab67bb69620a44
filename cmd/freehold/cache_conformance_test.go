//go:build linux

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

// Tests of memcached's protocol by other projects: memcached, libmemcached, and clients in Python,
// Go, Java, JavaScript and PHP. Each test fetches a project's tests or its client. If it cannot, it
// is skipped, or fails if the environment has CONFORMANCE=required, as in make conformance.
// docs/cache-server.md has the counts.

// lacking skips a test for which something cannot be had, or fails it if conformance is required.
func lacking(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CONFORMANCE") == "required" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// external skips short tests, and those on machines that lack a program.
func external(t *testing.T, programs ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("fetches tests of others")
	}
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			lacking(t, "needs %s", p)
		}
	}
}

// obtain runs a command in dir that fetches something, and skips the test if it cannot be had.
func obtain(t *testing.T, dir string, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		lacking(t, "%v cannot be had here: %v\n%s", command, err, out)
	}
	return string(out)
}

// fetchDebian extracts Debian packages into a directory, without installing them.
func fetchDebian(t *testing.T, packages ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	filetest.Must(t, os.Chmod(dir, 0o755))
	obtain(t, dir, append([]string{"apt-get", "download"}, packages...)...)
	for _, deb := range freehold.Must(filepath.Glob(filepath.Join(dir, "*.deb"))) {
		obtain(t, dir, "dpkg", "-x", deb, dir)
	}
	return dir
}

// librariesOf returns the environment's setting of the libraries in a directory of fetchDebian.
func librariesOf(dir string) string {
	return "LD_LIBRARY_PATH=" + strings.Join(freehold.Must(filepath.Glob(filepath.Join(dir, "usr/lib/*"))), ":")
}

// asMemcached is a program that takes memcached's flags and runs freehold cache.
const asMemcached = `#!/bin/bash
memory=64; port=; listen=127.0.0.1; args=()
while [ $# -gt 0 ]; do
	case $1 in
	-h) echo unix-socket; exit 0;;
	-m) memory=$2; [ $2 -lt 8 ] && args+=(-I 256KiB); shift;;
	-p) port=$2; shift;;
	-l) listen=$2; shift;;
	-W|-A) args+=($1);;
	-s|-c|-I|-Y) args+=($1 $2); shift;;
	-o) [[ $2 == idle_timeout=* ]] && args+=(--idle ${2#*=}s); shift;;
	-u|-U|-t|-R) shift;;
	*) exit 1;;
	esac
	shift
done
[ -n "$port" ] && args+=(-l $listen:$port)
exec %s cache -m ${memory}MiB "${args[@]}" 2>/dev/null
`

// memcachedTests are the files of memcached's t/ that are about the protocol, with the number of
// their tests that pass, and those that fail.
var memcachedTests = []struct {
	name   string
	passed int
	failed []string
}{
	{"ascii-auth", 10, nil},
	{"ascii-auth2", 4, nil},
	{"bogus-commands", 1, nil},
	{"cas", 42, nil},
	{"chunked-items", 16629, nil},
	{"dyn-maxbytes", 308, []string{"check evicted"}}, // 3 MiB hold all of its items
	{"evictions", 92, nil},
	{"expirations", 41, nil},
	{"flags", 8, nil},
	{"flush-all", 22, nil}, // the other 4 are of memcached's flag -F
	{"getandtouch", 15, nil},
	{"getset", 37992, []string{"close if no get found in 2k"}}, // the client is told why
	{"idle-timeout", 11, nil},
	{"incrdecr", 23, nil},
	{"issue_104", 6, nil},
	{"issue_108", 4, nil},
	{"issue_152", 2, nil},
	{"issue_192", 2, nil},
	{"issue_29", 4, nil},
	{"issue_3", 6, nil},
	{"issue_41", 691, nil},
	{"issue_68", 996, nil},
	{"issue_70", 4, nil},
	{"malicious-commands", 3, nil},
	{"maxconns", 1, nil},
	{"line-lengths", 1, nil},
	{"metaget", 175, nil},
	{"multiversioning", 13, nil},
	{"noreply", 9, nil},
	{"quit", 1, nil},
	{"shutdown", 6, nil},
	{"stats", 110, []string{"after flush and a get, get_flushed is 1", "expected count of stats values", "get_expired counter is 1"}},
	{"strtol-testing", 2, nil},
	{"touch", 4, nil},
	{"unixsocket", 3, nil},
	{"watcher", 43, nil},
	{"watcher_connid", 4, nil},
}

// memcached's own tests, of the version whose commands this server has.
func TestConformanceMemcached(t *testing.T) {
	external(t, "perl", "git", "bash")
	dir := fetchMemcached(t)
	write := func(name, text string) {
		filetest.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	write("timedrun", "#!/bin/sh\nshift\nexec \"$@\"\n")
	write("memcached-debug", fmt.Sprintf(asMemcached, freehold.Must(os.Executable())))
	lib := "t/lib/MemcachedTest.pm"
	text := string(freehold.Must(os.ReadFile(filepath.Join(dir, lib))))
	// A build for debugging moves its clock; here, time passes.
	text = strings.Replace(text, `print $sock "debugtime $move\r\n";`, `MemcachedTest::sleep($move + 1.1); return;`, 1)
	write(lib, text)
	for _, tt := range memcachedTests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), "perl", "t/"+tt.name+".t")
			cmd.Dir = dir
			out, _ := cmd.Output() // its exit code counts failures
			passed := len(regexp.MustCompile(`(?m)^ok `).FindAll(out, -1))
			var failed []string
			for _, m := range regexp.MustCompile(`(?m)^not ok \d+ - (.*)$`).FindAllSubmatch(out, -1) {
				failed = append(failed, string(m[1]))
			}
			slices.Sort(failed)
			if passed != tt.passed || !slices.Equal(failed, tt.failed) {
				t.Errorf("%d tests passed and %q failed, want %d and %q\n%s", passed, failed, tt.passed, tt.failed, out[max(len(out)-2000, 0):])
			}
		})
	}
}

// fetchMemcached returns a directory with memcached's source.
func fetchMemcached(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	obtain(t, dir, "git", "-c", "advice.detachedHead=false", "clone", "-q", "--depth", "1", "--branch", cacheVersion, "https://github.com/memcached/memcached")
	filetest.Must(t, os.Chmod(dir, 0o755))
	return filepath.Join(dir, "memcached")
}

// libmemcached's tests of a server.
func TestConformanceMemccapable(t *testing.T) {
	external(t, "apt-get", "dpkg")
	dir := fetchDebian(t, "libmemcached-tools", "libmemcached11", "libmemcachedutil2", "libhashkit2")
	address, _ := startCache(t)
	host, port, _ := net.SplitHostPort(address)
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "usr/bin/memccapable"), "-a", "-h", host, "-p", port)
	cmd.Env = append(os.Environ(), librariesOf(dir))
	out, err := cmd.CombinedOutput()
	if n := strings.Count(string(out), "[pass]"); err != nil || n != 27 {
		t.Errorf("%d of 27 pass, %v\n%s", n, err, out)
	}
}

// The integration tests of pymemcache.
func TestConformancePymemcache(t *testing.T) {
	external(t, "python3")
	dir := t.TempDir()
	obtain(t, dir, "python3", "-m", "venv", "venv")
	pip := filepath.Join(dir, "venv/bin/pip")
	obtain(t, dir, pip, "-q", "install", "pytest", "faker")
	obtain(t, dir, pip, "-q", "download", "--no-deps", "--no-binary", ":all:", "pymemcache==4.0.0")
	obtain(t, dir, "tar", "xf", "pymemcache-4.0.0.tar.gz")
	address, _ := startCache(t)
	host, port, _ := net.SplitHostPort(address)
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "venv/bin/python"), "-m", "pytest", "-q", "-o", "addopts=",
		"pymemcache/test/test_integration.py", "--server", host, "--port", port)
	cmd.Dir = filepath.Join(dir, "pymemcache-4.0.0")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "100 passed, 3 skipped") {
		t.Errorf("%v\n%s", err, out)
	}
}

// The tests of gomemcache, the client of most programs in Go.
func TestConformanceGomemcache(t *testing.T) {
	external(t, "go")
	dir := t.TempDir()
	const version = "v0.0.0-20260422231931-4d751bb6e37c"
	out := obtain(t, dir, "go", "mod", "download", "-json", "github.com/bradfitz/gomemcache@"+version)
	from := regexp.MustCompile(`"Dir": "(.*)"`).FindStringSubmatch(out)[1]
	filetest.Must(t, os.CopyFS(filepath.Join(dir, "src"), os.DirFS(from)))
	test := filepath.Join(dir, "src/memcache/memcache_test.go")
	address, _ := startCache(t)
	text := strings.ReplaceAll(string(freehold.Must(os.ReadFile(test))), `"localhost:11211"`, strconv.Quote(address))
	filetest.Must(t, os.Chmod(test, 0o644))
	filetest.Must(t, os.WriteFile(test, []byte(text), 0o644))
	cmd := exec.CommandContext(t.Context(), "go", "test", "-v", "-run", "TestLocalhost", "./memcache")
	cmd.Dir = filepath.Join(dir, "src")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	ran, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(ran), "--- PASS: TestLocalhost") {
		t.Errorf("%v\n%s", err, ran)
	}
}

// runClient checks the output of a client in testdata/clients, which ends with the number of its
// checks.
func runClient(t *testing.T, cmd *exec.Cmd, checks int) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if want := fmt.Sprintf("%d checks\n", checks); err != nil || !strings.HasSuffix(string(out), want) {
		t.Errorf("%v\n%s, want %s", err, out, want)
	}
}

// xmemcached, a client in Java.
func TestConformanceXmemcached(t *testing.T) {
	external(t, "java", "mvn")
	dir := t.TempDir()
	const pom = `<project><modelVersion>4.0.0</modelVersion><groupId>g</groupId><artifactId>a</artifactId><version>1</version><dependencies><dependency>
<groupId>com.googlecode.xmemcached</groupId><artifactId>xmemcached</artifactId><version>2.4.8</version></dependency></dependencies></project>`
	filetest.Must(t, os.WriteFile(filepath.Join(dir, "pom.xml"), []byte(pom), 0o644))
	obtain(t, dir, "mvn", "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies", "-DoutputDirectory="+dir)
	address, _ := startCache(t)
	runClient(t, exec.CommandContext(t.Context(), "java", "-cp", dir+"/*", "testdata/clients/Client.java", address), 41)
}

// npm's memcached, a client in JavaScript.
func TestConformanceNpm(t *testing.T) {
	external(t, "node", "npm")
	dir := t.TempDir()
	obtain(t, dir, "npm", "install", "--silent", "--no-audit", "--no-fund", "memcached@2.2.2")
	address, _ := startCache(t)
	cmd := exec.CommandContext(t.Context(), "node", "testdata/clients/client.js", address)
	cmd.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(dir, "node_modules"))
	runClient(t, cmd, 37)
}

// php-memcached, libmemcached's client in PHP.
func TestConformancePHP(t *testing.T) {
	external(t, "apt-get", "dpkg")
	const php = "php8.2" // of Debian 12
	dir := fetchDebian(t, php+"-cli", php+"-common", php+"-memcached", php+"-igbinary", php+"-msgpack", "libmemcached11", "libhashkit2")
	args := []string{"-n"}
	for _, extension := range []string{"igbinary", "msgpack", "memcached"} { // in the order of their needs
		args = append(args, "-d", "extension="+freehold.Must(filepath.Glob(filepath.Join(dir, "usr/lib/php/2*", extension+".so")))[0])
	}
	address, _ := startCache(t)
	host, port, _ := net.SplitHostPort(address)
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "usr/bin", php), append(args, "testdata/clients/client.php", host, port)...)
	cmd.Env = append(os.Environ(), librariesOf(dir))
	runClient(t, cmd, 46)
}

// Prometheus' exporter finds all that it looks for in stats, stats slabs, stats items and stats
// settings.
func TestConformanceExporter(t *testing.T) {
	external(t, "go")
	dir := t.TempDir()
	t.Setenv("GOBIN", dir)
	t.Setenv("GOWORK", "off")
	obtain(t, dir, "go", "install", "github.com/prometheus/memcached_exporter/cmd/memcached_exporter@v0.16.0")
	address, _ := startCache(t)
	say(t, dial(t, "tcp", address), "set a 0 0 1\r\n1\r\nget a b\r\n")
	l := freehold.Must(net.Listen("tcp", "127.0.0.1:0"))
	at := l.Addr().String()
	l.Close()
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "memcached_exporter"), "--memcached.address", address, "--web.listen-address", at)
	var said strings.Builder
	cmd.Stderr = &said
	filetest.Must(t, cmd.Start())
	page := ""
	await(t, "the exporter serves", func() bool {
		answer, err := http.Get("http://" + at + "/metrics")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		page = string(freehold.Must(io.ReadAll(answer.Body)))
		return true
	})
	cmd.Process.Kill()
	cmd.Wait()
	for _, want := range []string{
		"memcached_up 1", `memcached_commands_total{command="get",status="hit"} 1`, `memcached_commands_total{command="get",status="miss"} 1`,
		`memcached_commands_total{command="set",status="hit"} 1`, "memcached_current_items 1", "memcached_items_evicted_total 0", "memcached_limit_bytes 6.7108864e+07",
	} {
		if !strings.Contains(page, want+"\n") {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	if strings.Contains(said.String(), "level=ERROR") || strings.Contains(said.String(), "level=error") {
		t.Errorf("it says\n%s", said.String())
	}
}
