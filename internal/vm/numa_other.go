//go:build !linux

package vm

func place(addr, size uintptr, p NodePolicy, nodes *Nodes) error { return ErrUnsupported }
func allowedNodes(nodes *Nodes) error                            { return ErrUnsupported }
