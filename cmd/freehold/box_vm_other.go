//go:build !linux

package main

import "context"

// boxVMCommand is the first process of a virtual machine, which is a Linux.
type boxVMCommand struct{}

func (*boxVMCommand) Run(context.Context, streams) error { return unavailablef("boxvm: on Linux only") }
