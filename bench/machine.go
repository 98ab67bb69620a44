// Machine: where the figures were taken, and of what.

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/dustin/go-humanize"
)

type machine struct {
	CPU     string `json:"cpu"`
	Cores   int    `json:"cores"`
	Memory  string `json:"memory"`
	Kernel  string `json:"kernel"`
	Pages   string `json:"huge_pages"`
	Go      string `json:"go"`
	Commit  string `json:"commit"`
	Command string `json:"command"`
}

// describe finds out what it can; the rest stays "unknown".
func describe(ctx context.Context) machine {
	said := func(name string, args ...string) string {
		out, err := exec.CommandContext(ctx, name, args...).Output()
		if err != nil {
			return "unknown"
		}
		return strings.TrimSpace(string(out))
	}
	m := machine{
		CPU:     "unknown",
		Cores:   runtime.NumCPU(),
		Memory:  "unknown",
		Kernel:  runtime.GOOS,
		Pages:   "unknown",
		Go:      runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
		Commit:  said("git", "rev-parse", "--short=12", "HEAD"),
		Command: strings.Join(append([]string{"go run ./bench"}, os.Args[1:]...), " "),
	}
	if v := field("/proc/cpuinfo", "model name"); v != "" {
		m.CPU = v
	}
	var kB uint64
	if n, _ := fmt.Sscanf(field("/proc/meminfo", "MemTotal"), "%d kB", &kB); n == 1 {
		m.Memory = humanize.IBytes(kB << 10)
	}
	if v := said("uname", "-sr"); v != "unknown" {
		m.Kernel = v
	}
	if v, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled"); err == nil {
		m.Pages = strings.TrimSpace(string(v))
	}
	if m.Commit != "unknown" && said("git", "status", "--porcelain") != "" {
		m.Commit += " with changes"
	}
	return m
}

func (m machine) lines() [][2]string {
	return [][2]string{
		{"machine", fmt.Sprintf("%s, %d cores, %s", m.CPU, m.Cores, m.Memory)},
		{"kernel", m.Kernel + ", transparent huge pages " + m.Pages},
		{"go", m.Go},
		{"commit", m.Commit},
		{"command", m.Command},
	}
}

// field returns the value of the first line "name : value" in a file.
func field(path, name string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
