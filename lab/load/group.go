// A box: a control group of its own with a memory limit, at the top of its hierarchy.
//
//	/sys/fs/cgroup/lab-box-17/memory.max                       version 2
//	/sys/fs/cgroup/memory/lab-box-17/memory.limit_in_bytes     version 1

package load

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/freehold-go/freehold/lab/run"
)

// A box is the folder of a control group that was made for one process; "" is none.
type box string

const boxPrefix = "lab-box-"

// A hierarchy is a version of control groups: its top, and the files that limit a group.
type hierarchy struct{ top, limit, swap string }

var hierarchies = []hierarchy{
	{"/sys/fs/cgroup", "memory.max", "memory.swap.max"},
	{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"},
}

// newBox makes a box with a limit in bytes.
func newBox(limit int64) (box, error) {
	var problems error
	for _, h := range hierarchies {
		b, err := h.newBox(limit)
		if err == nil {
			return b, nil
		}
		problems = errors.Join(problems, err)
	}
	return "", run.Unavailablef("no control group can be made: %w; --box none measures peaks without a limit", problems)
}

// newBox makes a box that cannot swap, where swap is accounted for. Version 2 limits swap, version
// 1 memory and swap together, and refuses 0 for them.
func (h hierarchy) newBox(limit int64) (box, error) {
	removeLeftBoxes(h.top)
	_ = box(h.top).write("cgroup.subtree_control", "+memory") // of version 2
	dir, err := os.MkdirTemp(h.top, boxPrefix)
	if err != nil {
		return "", err
	}
	b, n := box(dir), strconv.FormatInt(limit, 10)
	if err := b.write(h.limit, n); err != nil {
		return "", errors.Join(err, os.Remove(dir))
	}
	_ = b.write(h.swap, n)
	_ = b.write(h.swap, "0")
	return b, nil
}

// write writes a file that the kernel has, and creates none.
func (b box) write(file, text string) error {
	f, err := os.OpenFile(filepath.Join(string(b), file), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// removeLeftBoxes removes what reports have left that were killed. A group that has processes
// cannot be removed, and one that has none yet is young.
func removeLeftBoxes(above string) {
	left, _ := filepath.Glob(filepath.Join(above, boxPrefix+"*"))
	for _, dir := range left {
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > time.Minute {
			_ = os.Remove(dir)
		}
	}
}

// enter changes a command so that it begins in b, and all of its memory counts.
func (b box) enter(cmd *exec.Cmd) {
	cmd.Args = append([]string{"sh", "-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, string(b), cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
}

// kills returns how many processes of the box the kernel has killed for lack of memory.
func (b box) kills() (kills int) {
	for _, file := range []string{"memory.events", "memory.oom_control"} { // of versions 2 and 1
		text, _ := os.ReadFile(filepath.Join(string(b), file))
		for line := range strings.Lines(string(text)) {
			if n, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
				kills, _ = strconv.Atoi(n)
			}
		}
	}
	return kills
}

// remove removes the group, which is busy until its process is gone for good.
func (b box) remove() (err error) {
	for range 100 {
		if err = os.Remove(string(b)); err == nil || os.IsNotExist(err) {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}
