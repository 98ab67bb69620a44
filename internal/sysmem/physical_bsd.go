//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package sysmem

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Physical returns the machine's memory in bytes.
func Physical() (int64, error) {
	name := "hw.physmem"
	switch runtime.GOOS {
	case "darwin":
		name = "hw.memsize"
	case "netbsd":
		name = "hw.physmem64"
	}
	if n, err := unix.SysctlUint64(name); err == nil {
		return int64(n), nil
	}
	n, err := unix.SysctlUint32(name)
	return int64(n), err
}
