//go:build !linux

package memcached

import "net"

// On other systems than Linux, package net reads all connections.
type (
	ready   struct{}
	sweeper struct{}
)

func (*ready) begin(net.Conn)           {}
func (*ready) is() bool                 { return false }
func (*ready) read([]byte) (int, error) { return 0, errNotReady }
func (*ready) write([]byte) int         { return 0 }

func (*session) serveReady(*deadlined) {}
