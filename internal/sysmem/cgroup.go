// Cgroups: the memory limits on the process's own path.
//
//	/proc/self/cgroup     0::/pod/app                 the process's group, as its namespace shows it
//	/proc/self/mountinfo  … /pod /sys/fs/cgroup …     where part of the hierarchy, /pod, is mounted
//
//	/sys/fs/cgroup/app    level 0: memory.max and memory.high, or memory.limit_in_bytes (v1)
//	/sys/fs/cgroup        level 1: the same, for the group and its siblings together
//
// A limit holds for all levels below it, so every level up to the mount point is read, and the
// limit that leaves the least memory counts. A missing file is no limit. A file that cannot be
// understood is reported as a problem: its last limit stays in force, and the other files still
// count.

package sysmem

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// NoLimit and all above it mean no limit. Cgroups of version 1 write the largest number of whole
// pages in place of the word max.
const NoLimit = 1 << 60

// Level is one directory on the process's path.
type Level struct {
	Dir string // in the root's fs.FS, so without a slash in front
	V2  bool
	Own bool // it is the process's own group, not an ancestor
}

// Limit is the limit of a level.
type Limit struct {
	Level
	Bytes int64
	File  string // its file, an absolute path
}

// Levels returns the levels of the process, its own first.
func Levels(files fs.FS) ([]Level, error) {
	groups, err := fs.ReadFile(files, "proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	mounts, err := fs.ReadFile(files, "proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var levels []Level
	var problems []error
	for line := range strings.Lines(string(groups)) {
		group, v2, ok := memoryGroup(line)
		if !ok {
			continue
		}
		mounted := false
		for line := range strings.Lines(string(mounts)) {
			root, point, ok := memoryMount(line, v2)
			if !ok {
				continue
			}
			if dir, ok := groupDir(group, root, point); ok {
				mounted = true
				levels = append(levels, climb(dir, point, v2)...)
			}
		}
		// A hierarchy of version 2 beside one of version 1 need not be mounted.
		if !mounted && (!v2 || len(levels) == 0) {
			problems = append(problems, fmt.Errorf("/proc/self/mountinfo has no mount of the cgroup %s", group))
		}
	}
	return levels, errors.Join(problems...)
}

// memoryGroup returns the group of a line of /proc/self/cgroup. ok is false if its hierarchy
// cannot limit memory.
func memoryGroup(line string) (group string, v2, ok bool) {
	fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
	if len(fields) != 3 || !strings.HasPrefix(fields[2], "/") {
		return "", false, false
	}
	v2 = fields[0] == "0" && fields[1] == ""
	return fields[2], v2, v2 || slices.Contains(strings.Split(fields[1], ","), "memory")
}

// memoryMount returns the root and the mount point of a line of /proc/self/mountinfo. ok is
// false if the line does not mount a cgroup hierarchy for memory of the given version.
//
//	31 24 0:27 /pod /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw
func memoryMount(line string, v2 bool) (root, point string, ok bool) {
	mount, system, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
	m, s := strings.Fields(mount), strings.Fields(system)
	if len(m) < 6 || len(s) < 1 {
		return "", "", false
	}
	if v2 {
		ok = s[0] == "cgroup2"
	} else {
		ok = s[0] == "cgroup" && slices.Contains(strings.Split(s[len(s)-1], ","), "memory")
	}
	return unescape(m[3]), unescape(m[4]), ok
}

// unescape undoes the escapes of mountinfo.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\043`, "#", `\134`, `\`).Replace

// groupDir returns the directory of a group in a mount. It reports false if the mount contains
// neither the group nor an ancestor. A root such as /../.. is above the process's namespace, so
// the path from there to the group is unknown. groupDir then returns the mount point, whose
// limit holds for the group too.
func groupDir(group, root, point string) (dir string, ok bool) {
	switch {
	case isBelow(group, root):
		return path.Join(point, strings.TrimPrefix(group, root)), true
	case strings.Trim(root, "/.") == "" && isBelow(group, "/"):
		return point, true
	}
	return "", false
}

// isBelow reports whether p is above or a path below it, without any "..".
func isBelow(p, above string) bool {
	if p == ".." || strings.Contains(p+"/", "/../") {
		return false
	}
	return above == "/" || p == above || strings.HasPrefix(p, above+"/")
}

// climb returns the levels from a directory to the mount point.
func climb(dir, point string, v2 bool) []Level {
	var levels []Level
	dir, point = path.Clean(dir), path.Clean(point)
	for {
		levels = append(levels, Level{cmp.Or(strings.TrimPrefix(dir, "/"), "."), v2, len(levels) == 0})
		if dir == point || dir == "/" || dir == "." {
			return levels
		}
		dir = path.Dir(dir)
	}
}

// Limits returns the limits of levels. The error joins the problems with files that cannot be
// read; such a file keeps its limit of before.
func Limits(files fs.FS, levels []Level, before []Limit) ([]Limit, error) {
	var limits []Limit
	var problems []error
	add := func(l Level, file string, n int64, err error) {
		file = "/" + file
		switch {
		case err == nil && n < NoLimit:
			limits = append(limits, Limit{l, n, file})
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			problems = append(problems, fmt.Errorf("%s: %w", file, cause(err)))
			if i := slices.IndexFunc(before, func(g Limit) bool { return g.File == file }); i >= 0 {
				limits = append(limits, Limit{l, before[i].Bytes, file})
			}
		}
	}
	for _, l := range levels {
		names := []string{"memory.limit_in_bytes"}
		if l.V2 {
			names = []string{"memory.max", "memory.high"}
		}
		for _, name := range names {
			file := path.Join(l.Dir, name)
			n, err := limitOf(files, file)
			add(l, file, n, err)
		}
		if l.Own && !l.V2 {
			// hierarchical_memory_limit includes the levels that a namespace hides.
			file := path.Join(l.Dir, "memory.stat")
			stat, err := Stat(files, file)
			add(l, file, cmp.Or(stat["hierarchical_memory_limit"], NoLimit), err)
		}
	}
	return limits, errors.Join(problems...)
}

// limitOf reads the number in a file, or NoLimit for the word max.
func limitOf(files fs.FS, file string) (int64, error) {
	content, err := fs.ReadFile(files, file)
	if err != nil {
		return 0, err
	}
	text := strings.TrimSpace(string(content))
	if text == "max" {
		return NoLimit, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%.40q, want a number of bytes above 0, or max", text)
	}
	return int64(min(n, NoLimit)), nil
}

// cause strips the path from an error, since the caller's message has it.
func cause(err error) error {
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// Used returns the bytes in use at a level, without the page cache and reclaimable slabs, which
// the kernel can drop. It reports false if the usage cannot be read.
func (l Level) Used(files fs.FS) (bytes int64, ok bool) {
	name, prefix := "memory.usage_in_bytes", "total_"
	if l.V2 {
		name, prefix = "memory.current", ""
	}
	n, err := limitOf(files, path.Join(l.Dir, name))
	if err != nil || n >= NoLimit { // sums must not overflow
		return 0, false
	}
	stat, _ := Stat(files, path.Join(l.Dir, "memory.stat"))
	cache := stat[prefix+"active_file"] + stat[prefix+"inactive_file"] + stat["slab_reclaimable"]
	return max(n-max(cache, 0), 0), true
}

// Stat parses a file with a name and a number on each line. Numbers in kB become bytes. Other
// lines are left out.
func Stat(files fs.FS, file string) (map[string]int64, error) {
	text, err := fs.ReadFile(files, file)
	if err != nil {
		return nil, err
	}
	stat := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		n, err := strconv.ParseInt(fields[1], 10, 64)
		switch name := strings.TrimSuffix(fields[0], ":"); {
		case err != nil || n < 0:
		case len(fields) == 2:
			stat[name] = n
		case fields[2] == "kB" && n < NoLimit>>10:
			stat[name] = n << 10
		}
	}
	return stat, nil
}
