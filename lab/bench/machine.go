// Machine: where the figures were taken, and of what.

package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/host"
	"github.com/shirou/gopsutil/v4/mem"
)

type machine struct {
	CPU     string
	Cores   int
	Memory  string
	Kernel  string
	Pages   string
	Go      string
	Commit  string
	Command string
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
		Command: strings.Join(append([]string{"go run ./lab"}, os.Args[1:]...), " "),
	}
	if v, err := cpu.InfoWithContext(ctx); err == nil && len(v) > 0 && v[0].ModelName != "" {
		m.CPU = v[0].ModelName
	}
	if v, err := mem.VirtualMemoryWithContext(ctx); err == nil {
		m.Memory = humanize.IBytes(v.Total)
	}
	if v, err := host.KernelVersionWithContext(ctx); err == nil && v != "" {
		m.Kernel += " " + v
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
