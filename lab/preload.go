// Preload: a process whose malloc is another one.
//
// A library in LD_PRELOAD stands in for the C library's malloc from the start of
// a process on, and only then. The demo's children are started with it; memtest
// becomes a process with it:
//
//	memtest --backend jemalloc --exec--> the same, with LD_PRELOAD set
//
// Either way the backend's open sees whether it worked.

package main

import (
	"fmt"
	"os"
	"syscall"
)

const preloadVariable = "LD_PRELOAD"

// environment returns the environment of a child that is to have the backend;
// names that are no backend's need nothing.
func environment(backend string) ([]string, error) {
	kind, err := backendNamed(backend)
	if err != nil || kind.preload == nil {
		return os.Environ(), nil
	}
	value, err := kind.preload()
	if err != nil || value == "" {
		return os.Environ(), err
	}
	return append(os.Environ(), preloadVariable+"="+value), nil
}

// become makes this process one that can have the backend. Where it is none yet
// the program begins anew and become does not return.
func (k backendKind) become() error {
	if k.preload == nil {
		return nil
	}
	value, err := k.preload()
	if err != nil || value == "" {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program, to run it again: %w", err)
	}
	if err := os.Setenv(preloadVariable, value); err != nil {
		return err
	}
	return fmt.Errorf("running this program again: %w", syscall.Exec(exe, os.Args, os.Environ()))
}
