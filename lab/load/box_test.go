package load

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/freehold-go/freehold/cmd/freehold/cli"
)

func TestBoxRuns(t *testing.T) {
	s := Boxes{Limits: []cli.Size{256 << 20, 4 << 30}, Shares: []int{10, 90}, With: []string{BoxDefault, BoxLimit, BoxBudget}, Runs: 2}
	runs := s.All()
	if len(runs) != 24 {
		t.Errorf("%d runs", len(runs))
	}
	for _, r := range runs {
		if off, live := r.offHeap(), s.LiveIn(r); off > r.Limit || off+2*live > r.Limit || live > 64<<20 || live <= 0 {
			t.Errorf("%+v: %d off-heap, %d live", r, off, live)
		}
	}
}

// A load has what limits its memory from its mode alone.
func TestBoxEnvironment(t *testing.T) {
	for name, value := range map[string]string{"GOGC": "50", "GOMEMLIMIT": "1000000000", "GODEBUG": "gctrace=1", "FREEHOLD_MEMORY_LIMIT": "7"} {
		t.Setenv(name, value)
	}
	for _, tt := range []struct {
		mode string
		box  string
		want []string
	}{
		{BoxDefault, "cgroup", []string{"GODEBUG=", "GOGC=", "GOMEMLIMIT=", "FREEHOLD_MEMORY_LIMIT="}},
		{BoxLimit, "cgroup", []string{"GODEBUG=", "GOGC=off", "GOMEMLIMIT=900", "FREEHOLD_MEMORY_LIMIT="}},
		{BoxBudget, "cgroup", []string{"GODEBUG=", "GOGC=", "GOMEMLIMIT=", "FREEHOLD_MEMORY_LIMIT="}}, // the budget finds it
		{BoxBudget, "none", []string{"GODEBUG=", "GOGC=", "GOMEMLIMIT=", "FREEHOLD_MEMORY_LIMIT=1000"}},
	} {
		cmd := exec.Cmd{Env: Boxes{Box: tt.box}.environment(BoxRun{Limit: 1000, Mode: tt.mode})}
		got := slices.DeleteFunc(cmd.Environ(), func(v string) bool {
			name, _, _ := strings.Cut(v, "=")
			return !slices.Contains([]string{"GODEBUG", "GOGC", "GOMEMLIMIT", "FREEHOLD_MEMORY_LIMIT"}, name)
		})
		slices.Sort(got)
		slices.Sort(tt.want)
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.mode, got, tt.want)
		}
	}
}

// A group whose limit cannot be set is no box, and is removed. So are old groups of earlier runs
// without processes.
func TestBoxRefused(t *testing.T) {
	above := t.TempDir()
	old := time.Now().Add(-time.Hour)
	for name, at := range map[string]time.Time{boxPrefix + "left": old, boxPrefix + "busy": old, boxPrefix + "young": time.Now(), "other": old} {
		dir := filepath.Join(above, name)
		if err := os.MkdirAll(filepath.Join(above, boxPrefix+"busy", "process"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := (hierarchy{top: above, limit: "memory.max"}).newBox(1 << 20); b != "" || err == nil || !strings.Contains(err.Error(), boxPrefix) {
		t.Errorf("%q, %v, want that the group has no limit", b, err)
	}
	left, _ := filepath.Glob(above + "/*")
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	if want := []string{boxPrefix + "busy", boxPrefix + "young", "other"}; !slices.Equal(left, want) {
		t.Errorf("%q are left, want %q", left, want)
	}
}

// What a box of either version tells of kills.
func TestBoxKills(t *testing.T) {
	for file, text := range map[string]string{
		"memory.events": "low 0\nmax 7\noom 2\noom_kill 3\n", "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
	} {
		b := box(t.TempDir())
		if err := os.WriteFile(filepath.Join(string(b), file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if n := b.kills(); n != 3 {
			t.Errorf("%s: %d kills", file, n)
		}
	}
}

// The kernel takes the limits.
func TestBoxLimit(t *testing.T) {
	b, err := newBox(1 << 30)
	if err != nil {
		t.Skip(err)
	}
	for _, h := range hierarchies {
		if text, err := os.ReadFile(filepath.Join(string(b), h.limit)); err == nil && string(text) != "1073741824\n" {
			t.Errorf("%s is %q", h.limit, text)
		}
		if text, err := os.ReadFile(filepath.Join(string(b), h.swap)); err == nil && string(text) != "0\n" && string(text) != "1073741824\n" {
			t.Errorf("%s is %q", h.swap, text)
		}
	}
	if err := b.remove(); err != nil {
		t.Error(err)
	}
}
