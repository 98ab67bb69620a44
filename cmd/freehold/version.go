package main

import (
	"fmt"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

// versionCommand prints what was built, from what, for what.
type versionCommand struct{}

func (versionCommand) Run(s cli.Streams) error {
	fmt.Fprintln(s.Out, version())
	return nil
}

func version() string { return cli.Version("freehold") }
