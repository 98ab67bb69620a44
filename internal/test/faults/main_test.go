//go:build linux

package faults

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// role is the environment variable with the role of a child process that is to be killed.
const role = "FREEHOLD_FAULTS_ROLE"

var roles = map[string]func() error{
	"writer":    write,
	"spiller":   spill,
	"snapshots": snapshots,
	"unguarded": unguarded,
}

func TestMain(m *testing.M) {
	flag.Parse()
	if f := roles[os.Getenv(role)]; f != nil {
		if err := f(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}
