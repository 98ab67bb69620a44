package main

import (
	"fmt"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// versionCommand prints the version, the commit, the version of Go and the system.
type versionCommand struct{}

func (versionCommand) Run(s cli.Streams) error {
	fmt.Fprintln(s.Out, version())
	return nil
}

func version() string { return cli.Version("freehold") }
