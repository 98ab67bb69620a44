package load

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestBoxRuns(t *testing.T) {
	s := Boxes{Limits: []int64{256 << 20, 4 << 30}, Shares: []int{10, 90}, Modes: BoxModes, Runs: 2}
	runs := s.All()
	if len(runs) != 24 {
		t.Errorf("%d runs", len(runs))
	}
	for _, r := range runs {
		if off, live := r.offHeap(), s.GoLive(r); off > r.Limit || off+2*live > r.Limit || live > 64<<20 || live <= 0 {
			t.Errorf("%+v: %d off-heap, %d live", r, off, live)
		}
	}
}

// A load has what limits its memory from its mode alone.
func TestBoxEnvironment(t *testing.T) {
	environ := []string{"HOME=/root", "GOGC=50", "GOMEMLIMIT=1", "GODEBUG=x", "FREEHOLD_MEMORY_LIMIT=7", "FREEHOLD_BOX=/old"}
	for _, tt := range []struct {
		mode, dir string
		want      []string
	}{
		{BoxDefault, "", []string{"HOME=/root"}},
		{BoxDefault, "/box", []string{"HOME=/root", "FREEHOLD_BOX=/box"}},
		{BoxLimit, "", []string{"HOME=/root", "GOGC=off", "GOMEMLIMIT=900"}},
		{BoxBudget, "/box", []string{"HOME=/root", "FREEHOLD_BOX=/box"}}, // where the budget finds it
		{BoxBudget, "", []string{"HOME=/root", "FREEHOLD_MEMORY_LIMIT=1000"}},
	} {
		if got := boxEnvironment(environ, tt.mode, 1000, tt.dir); !slices.Equal(got, tt.want) {
			t.Errorf("%s %s: %q, want %q", tt.mode, tt.mode, got, tt.want)
		}
	}
}

// groups writes files of control groups.
func groups(t *testing.T, files map[string]string) (root string) {
	root = t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// The smallest live heap is one node for each processor.
func TestLoadWithHardlyALiveHeap(t *testing.T) {
	w := &boxWork{load: boxLoad{Live: 1}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan bool)
	go func() { w.churn(ctx); close(ended) }()
	for w.nodes.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	stop()
	<-ended
}

// Files that the kernel would make are not there, so that each box is refused, and leaves
// nothing behind.
func TestBoxRefused(t *testing.T) {
	for _, tt := range []struct {
		list string
		want string
	}{
		{"0::/a/b\n", filepath.Join("a", "lab-box-")}, // a is the nearest that controls memory
		{"4:memory:/a/b\n0::/\n", filepath.Join("memory", "a", "b", "lab-box-")},
		{"4:cpu:/a\n", "no control group can be made"},
		{"nonsense\n", "no control group can be made"},
	} {
		root := groups(t, map[string]string{
			"list": tt.list, "cgroup.subtree_control": "cpu memory", "a/cgroup.subtree_control": "memory",
			"a/b/x": "", "memory/a/b/x": "",
		})
		b, err := newBoxIn(filepath.Join(root, "list"), root, 1<<20)
		if b != nil || err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "no control group can be made") {
			t.Errorf("%q: %v", tt.list, err)
		}
		filepath.WalkDir(root, func(p string, _ os.DirEntry, _ error) error {
			if strings.Contains(p, "lab-box") {
				t.Errorf("%q: %s is left", tt.list, p)
			}
			return nil
		})
	}
	if _, err := newBoxIn(filepath.Join(t.TempDir(), "none"), "/", 1); err == nil {
		t.Error("a system without control groups")
	}
}

// What others have left neither keeps a box from being made nor stays, if it can be told that
// nobody uses it.
func TestLeftBoxes(t *testing.T) {
	const gone = 1 << 30 // no process has such an id
	own := boxPrefix + strconv.Itoa(os.Getpid())
	root := groups(t, map[string]string{
		own + "/busy": "", own + "-1/busy": "",
		fmt.Sprintf("%s%d-3/busy", boxPrefix, gone): "",
		boxPrefix + "mine/x":                        "", "other/x": "",
	})
	for _, dir := range []string{strconv.Itoa(gone), fmt.Sprintf("%d-2", gone), strconv.Itoa(os.Getppid()), "0", "-1"} {
		if err := os.Mkdir(filepath.Join(root, boxPrefix+dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	_, err := createBox(root, boxV2, 1<<20)
	if err == nil || !strings.Contains(err.Error(), own+"-") || !strings.Contains(err.Error(), boxV2.limit) {
		t.Errorf("%v, want that a group of its own name has no limit", err)
	}
	for name, want := range map[string]bool{
		own: true, own + "-1": true, // busy
		fmt.Sprintf("%s%d-3", boxPrefix, gone): true, // busy
		fmt.Sprintf("%s%d", boxPrefix, gone):   false, fmt.Sprintf("%s%d-2", boxPrefix, gone): false,
		fmt.Sprintf("%s%d", boxPrefix, os.Getppid()): true,
		boxPrefix + "0": true, boxPrefix + "-1": true, boxPrefix + "mine": true, "other": true,
	} {
		if _, err := os.Stat(filepath.Join(root, name)); os.IsNotExist(err) == want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a box of either version tells and takes.
func TestBoxFiles(t *testing.T) {
	for _, tt := range []struct {
		files              boxFiles
		version, swap, all string
	}{
		{boxV2, "v2", "0", "low 0\nmax 7\noom 2\noom_kill 3\n"},
		{boxV1, "v1", "4096", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"},
	} {
		root := groups(t, map[string]string{
			"x/" + tt.files.limit: "max", "x/" + tt.files.swap: "max", "x/" + tt.files.kills: tt.all,
		})
		b := &box{filepath.Join(root, "x"), tt.files}
		if err := b.limit(4096); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(filepath.Join(b.dir, tt.files.limit)); string(got) != "4096" {
			t.Errorf("%s: limit %q", tt.version, got)
		}
		if got, _ := os.ReadFile(filepath.Join(b.dir, tt.files.swap)); string(got) != tt.swap {
			t.Errorf("%s: swap %q", tt.version, got)
		}
		if b.kills() != 3 || b.killer() != BoxKilled {
			t.Errorf("%s: %d kills, %s", tt.version, b.kills(), b.killer())
		}
		if err := os.WriteFile(filepath.Join(b.dir, tt.files.kills), []byte("oom_kill 0\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if b.killer() != BoxStruck {
			t.Errorf("%s: %s without a kill of the box", tt.version, b.killer())
		}
	}
}

func TestKillWithoutABox(t *testing.T) {
	if got := (*box)(nil).killer(); got != BoxStruck {
		t.Error(got)
	}
}
