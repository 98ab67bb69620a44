// Listeners: addresses, a Unix socket, and the sockets that systemd has opened.

package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
)

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

// listeners opens the listeners, with TLS at addresses unless config is nil.
func (c *cacheCommand) listeners(config *tls.Config) (all []net.Listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range all {
				l.Close()
			}
			all = nil
		}
	}()
	if all, err = inherited(); err != nil {
		return all, err
	}
	addresses := c.Listen
	if len(addresses) == 0 && c.Socket == "" && len(all) == 0 {
		addresses = []string{"127.0.0.1:11211"}
	}
	for _, addr := range addresses {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return all, fmt.Errorf("-l: %w", err)
		}
		all = append(all, l)
	}
	if c.Socket != "" {
		l, err := unixListener(c.Socket)
		if err != nil {
			return all, fmt.Errorf("-s: %w", err)
		}
		all = append(all, l)
	}
	return wrapTLS(all, config), nil
}

// unixListener listens at a path. It replaces a socket without a server.
func unixListener(path string) (net.Listener, error) {
	l, err := net.Listen("unix", path)
	if err == nil {
		return l, nil
	}
	if info, statErr := os.Lstat(path); statErr != nil || info.Mode().Type() != os.ModeSocket {
		return nil, err
	}
	if conn, dialErr := net.Dial("unix", path); dialErr == nil {
		conn.Close()
		return nil, err
	}
	if removeErr := os.Remove(path); removeErr != nil {
		return nil, errors.Join(err, removeErr)
	}
	return net.Listen("unix", path)
}
