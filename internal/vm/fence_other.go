//go:build !linux && !windows

package vm

func prepareFence(_, _ uintptr) error { return ErrUnsupported }

func fence(_, _ uintptr) error { return ErrUnsupported }
