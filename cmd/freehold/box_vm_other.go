//go:build !linux

package main

import (
	"context"
	"os/exec"
)

// endWithParent does nothing: there are no virtual machines here.
func endWithParent(*exec.Cmd) {}

// boxVMCommand is the first process of a virtual machine, which is a Linux.
type boxVMCommand struct{}

func (*boxVMCommand) Run(context.Context, streams) error { return unavailablef("boxvm: on Linux only") }
