// Systems without mmap: memory is Go's own and files cannot be mapped.

//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package vm

import (
	"errors"
	"os"
)

func mapFile(fd, size uintptr, writable bool) (uintptr, error) { return 0, ErrUnsupported }

func isSparse(*os.File) bool                        { return false }
func unmapFile(addr, size uintptr) error            { return ErrUnsupported }
func syncFile(addr, size uintptr) error             { return ErrUnsupported }
func advise(addr, size uintptr, a Advice) error     { return ErrUnsupported }
func setName(addr, size uintptr, name string) error { return ErrUnsupported }
func outOfMemory(err error) bool                    { return errors.Is(err, ErrNoMemory) }
