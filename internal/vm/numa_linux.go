// Linux places pages by mbind.

package vm

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func place(addr, size uintptr, p NodePolicy, nodes *Nodes) error {
	maxNode := uintptr(MaxNode + 2) // the kernel subtracts 1
	if p == LocalNode {
		nodes, maxNode = nil, 0
	}
	_, _, errno := unix.Syscall6(unix.SYS_MBIND, addr, size, uintptr(p), uintptr(unsafe.Pointer(nodes)), maxNode, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func allowedNodes(nodes *Nodes) error {
	_, _, errno := unix.Syscall6(unix.SYS_GET_MEMPOLICY, 0, uintptr(unsafe.Pointer(nodes)), MaxNode+2, 0, unix.MPOL_F_MEMS_ALLOWED, 0)
	if errno != 0 {
		return errno
	}
	return place(0, 0, LocalNode, nil) // no-op: is mbind forbidden?
}
