//go:build unix

package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/freehold-go/freehold"
	"github.com/freehold-go/freehold/cmd/freehold/memcached"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

// The command refresh_certs and SIGHUP reload certificates and users while connections go on. Files
// that are wrong change nothing.
func TestCacheReloads(t *testing.T) {
	dir := t.TempDir()
	cert, key, users := filepath.Join(dir, "cert"), filepath.Join(dir, "key"), filepath.Join(dir, "users")
	write := func(text string) { filetest.Must(t, os.WriteFile(users, []byte(text), 0o600)) }
	first := writeCertificate(t, cert, key)
	write("me:a:b\r\n\nyou:x")
	cmd := exec.Command(freehold.Must(os.Executable()), "cache", "-l", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "-Y", users)
	address, said := startServer(t, cmd)
	if log := said.String(); !strings.Contains(log, address+" (tcp, TLS) for the users in "+users+", in at most 64.0 MiB of memory\n") || strings.Contains(log, "you:x") {
		t.Errorf("the log is %q", log)
	}
	enters := func(pool *x509.CertPool, token, want string) {
		t.Helper()
		if got := say(t, dialTLS(t, address, pool), fmt.Sprintf("set x 0 0 %d\r\n%s\r\n", len(token), token)); got != want {
			t.Errorf("%s: %q, want %q", token, got, want)
		}
	}
	const no, yes = "CLIENT_ERROR authentication failure\r\n", "STORED\r\n"
	enters(first, "me a:b", yes)
	enters(first, "you x", yes)
	enters(first, "me x", no)
	stays := dialTLS(t, address, first)
	defer stays.Close()
	replies := bufio.NewReader(stays)
	ask := func(command, want string) {
		t.Helper()
		io.WriteString(stays, command)
		if got, err := replies.ReadString('\n'); got != want {
			t.Errorf("%q: %q, %v, want %q", command, got, err, want)
		}
	}
	ask("set x 0 0 5\r\nyou x\r\n", yes)

	second := writeCertificate(t, cert, key)
	write("me:new\n")
	ask("refresh_certs\r\n", "OK\r\n")
	enters(second, "me new", yes)
	enters(second, "you x", no)

	write("none\n")
	ask("refresh_certs\r\n", "SERVER_ERROR files were not reloaded; the server's log says why\r\n")
	enters(second, "me new", yes)
	await(t, "the server says why", func() bool {
		return strings.Contains(said.String(), "not reloaded: --users: "+users+", line 1: no user:password\n")
	})

	third := writeCertificate(t, cert, key)
	write("me:third")
	before := strings.Count(said.String(), "certificates and users reloaded")
	filetest.Must(t, cmd.Process.Signal(syscall.SIGHUP))
	await(t, "the server has reloaded", func() bool {
		return strings.Count(said.String(), "certificates and users reloaded") > before
	})
	enters(third, "me third", yes)
	ask("mn\r\n", "MN\r\n")
}

// TestUsers: files of users, and one token that is admitted. A file is refused if one of its users
// could never come in.
func TestUsers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "users")
	long := strings.Repeat("p", memcached.MaxToken-len("me:"))
	for _, tt := range []struct{ text, user, password, err string }{
		{"me:pw", "me", "pw", ""},
		{"me:p w:x\r\n\r\nyou:\r\n", "me", "p w:x", ""},
		{"me:pw\r\n\nyou:\r\n", "you", "", ""},
		{"me:a\nme:b\n", "me", "b", ""},
		{"\uFEFFme:pw\n", "me", "pw", ""},
		{"me:" + long, "me", long, ""},
		{"you:x\nme:" + long + "p\n", "", "", ", line 2: 1025 bytes, and clients can send at most 1024"},
		{"", "", "", " has no users"},
		{"\r\n\n", "", "", " has no users"},
		{"me:pw\n# you\n", "", "", ", line 2: no user:password"},
		{":pw\n", "", "", ", line 1: no user:password"},
		{"m e:pw\n", "", "", ", line 1: no user:password"},
		{strings.Repeat("\n", maxUsers+1), "", "", " has more than 1048576 bytes"},
	} {
		filetest.Must(t, os.WriteFile(path, []byte(tt.text), 0o600))
		s := &secrets{users: path}
		switch err := s.reload(); {
		case tt.err != "":
			if err == nil || err.Error() != "--users: "+path+tt.err {
				t.Errorf("%.20q: %v, want %s", tt.text, err, tt.err)
			}
		case err != nil || !s.admits()([]byte(tt.user), []byte(tt.password)):
			t.Errorf("%.20q: %v, or %s is refused", tt.text, err, tt.user)
		}
	}
	if _, err := readUsers("/dev/zero"); err == nil {
		t.Error("a file without an end is read")
	}
	if credentialOf([]byte("me"), []byte("pw")) == credentialOf([]byte("mep"), []byte("w")) {
		t.Error("mep is admitted by the password of me")
	}
}

// Of two reloads, the one that began later reads its files later. A pipe holds the first back.
func TestReloadsInTurn(t *testing.T) {
	users := filepath.Join(t.TempDir(), "users")
	filetest.Must(t, syscall.Mkfifo(users, 0o600))
	s := &secrets{users: users}
	done := make(chan error)
	go func() { done <- s.reload() }()
	pipe := freehold.Must(os.OpenFile(users, os.O_WRONLY, 0)) // waits for the reader
	if s.reloading.TryLock() {
		t.Error("another reload may pass this one")
		s.reloading.Unlock()
	}
	freehold.Must(pipe.WriteString("me:secret\n"))
	filetest.Must(t, pipe.Close())
	filetest.Must(t, <-done)
	if admits := s.admits(); !admits([]byte("me"), []byte("secret")) || !s.reloading.TryLock() {
		t.Error("the reload has not ended, or not read the users")
	}
}

// writeCertificate writes a certificate for 127.0.0.1 and its key, and returns a pool that trusts
// it.
func writeCertificate(t *testing.T, certFile, keyFile string) *x509.CertPool {
	t.Helper()
	key := freehold.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der := freehold.Must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: freehold.Must(x509.MarshalPKCS8PrivateKey(key))})
	filetest.Must(t, os.WriteFile(certFile, certPEM, 0o600))
	filetest.Must(t, os.WriteFile(keyFile, keyPEM, 0o600))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return pool
}

func dialTLS(t *testing.T, address string, pool *x509.CertPool) net.Conn {
	t.Helper()
	conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: pool})
	if err != nil {
		t.Fatal(err)
	}
	return conn
}
