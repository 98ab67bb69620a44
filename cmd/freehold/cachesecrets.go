// Secrets: the certificates and users of a cache server.

package main

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"os"
	"sync"
	"sync/atomic"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
	"github.com/freehold-go/freehold/cmd/freehold/memcached"
)

// secrets are the certificates and users of a cache server. reload reads their files again while the
// server runs; open connections stay as they are.
type secrets struct {
	tls   tlsFlags
	users string // the file of users, "" is none
	log   *log.Logger

	reloading    sync.Mutex // held by reload, so that the files that were read last stay
	certificates atomic.Pointer[tls.Config]
	known        atomic.Pointer[[]credential]
}

// A credential is the hash of a user and a password, so that comparisons take equal time.
type credential [sha256.Size]byte

func credentialOf(user, password []byte) credential {
	length := fmt.Appendf(nil, "%d ", len(user)) // so that no other pair has the same bytes
	return sha256.Sum256(append(append(length, user...), password...))
}

// reload reads all files. After an error, all is as before.
func (s *secrets) reload() error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	config, err := s.tls.tlsConfig()
	if err != nil {
		return err
	}
	known, err := readUsers(s.users)
	if err != nil {
		return fmt.Errorf("--users: %w", err)
	}
	s.certificates.Store(config)
	s.known.Store(&known)
	return nil
}

// config returns the configuration of listeners, or nil without TLS. Each connection gets the
// certificates of the last reload.
func (s *secrets) config() *tls.Config {
	if s.tls.TLSCert == "" {
		return nil
	}
	return &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.certificates.Load(), nil }}
}

// admits returns the function that authenticates users, or nil without users.
func (s *secrets) admits() func(user, password []byte) bool {
	if s.users == "" {
		return nil
	}
	return func(user, password []byte) bool {
		is, found := credentialOf(user, password), 0
		for _, c := range *s.known.Load() {
			found |= subtle.ConstantTimeCompare(is[:], c[:])
		}
		return found == 1
	}
}

// reloader returns a function that reloads and logs, or nil if there are no files.
func (s *secrets) reloader() func() error {
	if s.users == "" && s.tls.TLSCert == "" {
		return nil
	}
	return func() error {
		err := s.reload()
		if err != nil {
			s.log.Printf("not reloaded: %v", err)
		} else {
			s.log.Print("certificates and users reloaded")
		}
		return err
	}
}

// onSignal is reloader for a signal.
func (s *secrets) onSignal() func() {
	reload := s.reloader()
	if reload == nil {
		return nil
	}
	return func() { reload() }
}

// maxUsers is the size, in bytes, of the largest file of users.
const maxUsers = 1 << 20

// readUsers reads the lines user:password of a file. Blank lines are skipped.
func readUsers(path string) (all []credential, err error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxUsers+1)) // a device may have no end
	if err != nil {
		return nil, err
	}
	if len(text) > maxUsers {
		return nil, fmt.Errorf("%s has more than %d bytes", path, maxUsers)
	}
	text = bytes.TrimPrefix(text, []byte("\uFEFF")) // some editors begin UTF-8 with it
	for i, line := range bytes.Split(text, []byte("\n")) {
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 0 {
			continue
		}
		user, password, found := bytes.Cut(line, []byte(":"))
		if !found || len(user) == 0 || bytes.IndexByte(user, ' ') >= 0 {
			return nil, fmt.Errorf("%s, line %d: no user:password", path, i+1)
		}
		if len(line) > memcached.MaxToken {
			return nil, fmt.Errorf("%s, line %d: %d bytes, and clients can send at most %d", path, i+1, len(line), memcached.MaxToken)
		}
		all = append(all, credentialOf(user, password))
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no users", path)
	}
	return all, nil
}

// tlsFlags are for encrypted connections.
type tlsFlags struct {
	TLSCert string `name:"tls-cert" placeholder:"FILE" help:"Serve TLS at addresses with this certificate (PEM, with its chain)."`
	TLSKey  string `name:"tls-key" placeholder:"FILE" help:"The certificate's key."`
	TLSCA   string `name:"tls-ca" placeholder:"FILE" help:"Admit only clients that have a certificate of one of these authorities."`
}

// tlsConfig returns the configuration of the flags, or nil without flags.
func (f *tlsFlags) tlsConfig() (*tls.Config, error) {
	if (f.TLSCert == "") != (f.TLSKey == "") || f.TLSCA != "" && f.TLSCert == "" {
		return nil, cli.Usagef("--tls-cert and --tls-key belong together, and --tls-ca needs both")
	}
	if f.TLSCert == "" {
		return nil, nil
	}
	cert, err := tls.LoadX509KeyPair(f.TLSCert, f.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert: %w", err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	if f.TLSCA == "" {
		return config, nil
	}
	pem, err := os.ReadFile(f.TLSCA)
	if err != nil {
		return nil, fmt.Errorf("--tls-ca: %w", err)
	}
	config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !config.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--tls-ca: %s has no certificate", f.TLSCA)
	}
	return config, nil
}
