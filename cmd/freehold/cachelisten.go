package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

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

// wrapTLS adds TLS to all listeners except Unix sockets, unless config is nil.
func wrapTLS(all []net.Listener, config *tls.Config) []net.Listener {
	if config == nil {
		return all
	}
	for i, l := range all {
		if l.Addr().Network() != "unix" {
			all[i] = tls.NewListener(l, config)
		}
	}
	return all
}

// firstInherited is the first file descriptor that systemd passes to a service.
const firstInherited = 3

// inherited returns the sockets that systemd has opened for this process, by the protocol of
// sd_listen_fds(3).
func inherited() (all []net.Listener, err error) {
	n, err := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	if err != nil || os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	for fd := firstInherited; fd < firstInherited+n; fd++ {
		file := os.NewFile(uintptr(fd), "LISTEN_FDS")
		l, listenErr := net.FileListener(file)
		file.Close()
		if listenErr != nil {
			err = errors.Join(err, fmt.Errorf("LISTEN_FDS: descriptor %d: %w", fd, listenErr))
			continue
		}
		all = append(all, l)
	}
	return all, err
}
