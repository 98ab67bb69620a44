// A box: a control group of its own with a memory limit.
//
//	/proc/self/cgroup    0::/a/b                      v2, with the memory controller
//	                     4:memory:/a/b                v1
//	/sys/fs/cgroup/a     cgroup.subtree_control: memory
//	/sys/fs/cgroup/a/lab-box-7-1   memory.max
//
// A group of version 2 that has processes cannot limit the groups below it, unless it is the
// root. So the box is below the nearest group above this process that can.

package load

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/freehold-go/freehold/lab/run"
)

// A box is a control group that was made for one process.
type box struct {
	dir   string
	files boxFiles
}

// boxFiles are the names of a version's files.
type boxFiles struct{ limit, swap, kills string }

var (
	boxV2 = boxFiles{"memory.max", "memory.swap.max", "memory.events"}
	boxV1 = boxFiles{"memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.oom_control"}
)

// newBox makes a box with a limit in bytes.
func newBox(limit int64) (*box, error) {
	return newBoxIn("/proc/self/cgroup", "/sys/fs/cgroup", limit)
}

// newBoxIn is newBox with the list of groups and the folder of their files.
func newBoxIn(list, root string, limit int64) (*box, error) {
	text, err := os.ReadFile(list)
	if err != nil {
		return nil, run.Unavailablef("no control groups: %w", err)
	}
	var problems []error
	for line := range strings.Lines(string(text)) {
		id, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, ok := strings.Cut(rest, ":")
		if !ok {
			continue
		}
		group = path.Clean("/" + group)
		switch {
		case slices.Contains(strings.Split(controllers, ","), "memory"):
			b, err := createBox(filepath.Join(root, "memory", group), boxV1, limit)
			if err != nil {
				problems = append(problems, err)
				continue
			}
			return b, nil
		case id == "0":
			above, err := controlling(root, group)
			if err != nil {
				problems = append(problems, err)
				continue
			}
			b, err := createBox(above, boxV2, limit)
			if err != nil {
				problems = append(problems, err)
				continue
			}
			return b, nil
		}
	}
	return nil, run.Unavailablef("no control group can be made: %w; --box none measures peaks without a limit", errors.Join(problems...))
}

// controlling returns the nearest group that limits memory for those below it.
func controlling(root, group string) (dir string, err error) {
	for ; ; group = path.Dir(group) {
		dir := filepath.Join(root, filepath.FromSlash(group))
		control := filepath.Join(dir, "cgroup.subtree_control")
		text, err := os.ReadFile(control)
		if err == nil && !slices.Contains(strings.Fields(string(text)), "memory") {
			err = os.WriteFile(control, []byte("+memory"), 0)
		}
		if err == nil || group == "/" {
			return dir, err
		}
	}
}

// createBox makes a group below another and sets its limit.
func createBox(above string, files boxFiles, limit int64) (*box, error) {
	removeLeftBoxes(above)
	// A name that was not there before: one may be left by a process that had this one's id.
	dir, err := os.MkdirTemp(above, fmt.Sprintf("%s%d-*", boxPrefix, os.Getpid()))
	if err != nil {
		return nil, err
	}
	b := &box{dir, files}
	if err := b.limit(limit); err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	return b, nil
}

const boxPrefix = "lab-box-" // and the id of the process that made it

// removeLeftBoxes removes what processes have left that were killed. A group that has
// processes cannot be removed, and stays.
func removeLeftBoxes(above string) {
	groups, _ := os.ReadDir(above)
	for _, g := range groups {
		rest, ours := strings.CutPrefix(g.Name(), boxPrefix)
		id, _, _ := strings.Cut(rest, "-")
		if pid, err := strconv.Atoi(id); ours && err == nil && pid > 0 && !isAlive(pid) {
			_ = os.Remove(filepath.Join(above, g.Name()))
		}
	}
}

// isAlive reports whether there is a process with an id, as far as can be told.
func isAlive(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && !errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

// limit sets the limit, and that nothing is swapped.
func (b *box) limit(limit int64) error {
	n := []byte(strconv.FormatInt(limit, 10))
	if err := writeExisting(filepath.Join(b.dir, b.files.limit), n); err != nil {
		return err
	}
	swap := n // of version 1 it is memory and swap together
	if b.files == boxV2 {
		swap = []byte("0")
	}
	_ = writeExisting(filepath.Join(b.dir, b.files.swap), swap) // not there without swap accounting
	return nil
}

// writeExisting writes a file that the kernel has, and creates none.
func writeExisting(file string, text []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// kills returns how many processes of the box the kernel has killed for lack of memory, 0 of
// none.
func (b *box) kills() int64 {
	if b == nil {
		return 0
	}
	text, _ := os.ReadFile(filepath.Join(b.dir, b.files.kills))
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
			kills, _ := strconv.ParseInt(n, 10, 64)
			return kills
		}
	}
	return 0
}

// remove removes the group, which is busy until its process is gone for good.
func (b *box) remove() error {
	var err error
	for range 100 {
		if err = os.Remove(b.dir); err == nil || os.IsNotExist(err) {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}
