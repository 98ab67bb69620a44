// Peers: freehold sort and GNU sort, the commands.

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/freehold-go/freehold/lab/process"
)

func sortByCommand(p *params, from, to string) (run, error) {
	return command(p.Command, append([]string{"sort"}, sortFlags(p, from, to)...)...)
}

func sortByGNU(p *params, from, to string) (run, error) {
	return command("sort", sortFlags(p, from, to)...)
}

// sortFlags are the same for both.
func sortFlags(p *params, from, to string) []string {
	return []string{"-S", fmt.Sprintf("%db", p.Memory), fmt.Sprintf("--parallel=%d", p.Parallel), "-T", p.Dir, "-o", to, from}
}

// look is how often a command's resident memory is read.
const look = 20 * time.Millisecond

func command(name string, args ...string) (r run, err error) {
	var said bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Stderr = &said
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return r, err
	}
	peak := process.Watch(cmd.Process.Pid, look)
	err = cmd.Wait()
	r.ns, r.peak = float64(time.Since(began)), uint64(peak())
	r.cpu = float64(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime())
	if err != nil && said.Len() > 0 {
		err = errors.New(strings.TrimSpace(said.String()))
	}
	return r, err
}

func commandVersion(p *params) (string, error) {
	return versionOf(p.Command, "version")
}

func gnuVersion(*params) (string, error) {
	version, err := versionOf("sort", "--version")
	if err == nil && !strings.Contains(version, "GNU") {
		return "", fmt.Errorf("sort is not GNU's: %s", version)
	}
	return version, err
}

func versionOf(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line, nil
}
