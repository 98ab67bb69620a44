// A box: a control group of its own with a memory limit.
//
//	/proc/self/cgroup    0::/a/b              v2, with the memory controller
//	                     4:memory:/a/b        v1
//	/sys/fs/cgroup/a     lab-box-17/memory.max
//
// A group of version 2 that has processes cannot limit the groups below it, unless it is the
// root. So the box is below the nearest group above this process that can.

package load

import (
	"errors"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/freehold-go/freehold/lab/run"
)

// A box is the folder of a control group that was made for one process; "" is none.
type box string

const boxPrefix = "lab-box-"

// newBox makes a box with a limit in bytes.
func newBox(limit int64) (box, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", run.Unavailablef("no control groups: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		root := "/sys/fs/cgroup"
		switch {
		case slices.Contains(strings.Split(controllers, ","), "memory"):
			root += "/memory"
		case controllers != "":
			continue
		}
		for group = path.Clean("/" + group); ; group = path.Dir(group) {
			b, created := createBox(filepath.Join(root, group), limit)
			if created == nil {
				return b, nil
			}
			err = errors.Join(err, created)
			if group == "/" {
				break
			}
		}
	}
	return "", run.Unavailablef("no control group can be made: %w; --box none measures peaks without a limit", err)
}

// createBox makes a group below another and sets its limit.
func createBox(above string, limit int64) (box, error) {
	removeLeftBoxes(above)
	_ = box(above).write("cgroup.subtree_control", "+memory") // of version 2
	dir, err := os.MkdirTemp(above, boxPrefix)
	if err != nil {
		return "", err
	}
	if err := box(dir).limit(limit); err != nil {
		return "", errors.Join(err, os.Remove(dir))
	}
	return box(dir), nil
}

// limit sets the limit of memory, and that nothing is swapped where swap is accounted for.
func (b box) limit(bytes int64) error {
	n := strconv.FormatInt(bytes, 10)
	err2 := b.write("memory.max", n)
	if err2 == nil {
		_ = b.write("memory.swap.max", "0")
		return nil
	}
	err1 := b.write("memory.limit_in_bytes", n)
	if err1 == nil {
		_ = b.write("memory.memsw.limit_in_bytes", n)
		return nil
	}
	return errors.Join(err2, err1)
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
