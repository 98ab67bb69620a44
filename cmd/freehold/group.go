// Control groups: how much memory this process's groups still allow.
//
//	/proc/self/cgroup   0::/a/b           v2
//	                    4:memory:/a/b     v1
//	/sys/fs/cgroup      memory.max, memory.current: of /a/b, of /a, of /
//	 .../memory         memory.limit_in_bytes, memory.usage_in_bytes
//
// Every group above a process limits it, and counts all processes below. A container
// may see its own group as the root only.

package main

import (
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// groupFiles are the names of a version's files.
type groupFiles struct{ limit, used, cache string }

var (
	groupV1 = groupFiles{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}
	groupV2 = groupFiles{"memory.max", "memory.current", "inactive_file"}
)

// containerRoom returns the bytes that the control groups of this process still
// allow, math.MaxInt64 if none limits it.
var containerRoom = func() int64 { return groupRoom("/proc/self/cgroup", "/sys/fs/cgroup") }

// groupRoom is containerRoom with the list of groups and the folder of their files.
func groupRoom(list, root string) int64 {
	room := int64(math.MaxInt64)
	text, err := os.ReadFile(list)
	if err != nil {
		return room
	}
	for line := range strings.Lines(string(text)) {
		id, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, ok := strings.Cut(rest, ":")
		if !ok {
			continue
		}
		switch {
		case id == "0":
			room = min(room, roomBelow(root, group, groupV2))
		case strings.Contains(","+controllers+",", ",memory,"):
			room = min(room, roomBelow(filepath.Join(root, "memory"), group, groupV1))
		}
	}
	return room
}

// roomBelow returns the least room of a group and all above it.
func roomBelow(root, group string, files groupFiles) int64 {
	room := int64(math.MaxInt64)
	for group = path.Clean("/" + group); ; group = path.Dir(group) {
		dir := filepath.Join(root, filepath.FromSlash(group))
		limit, limited := numberIn(filepath.Join(dir, files.limit))
		used, known := numberIn(filepath.Join(dir, files.used))
		if limited && known {
			// The kernel drops cached files before it kills.
			room = min(room, max(0, limit-used+cached(filepath.Join(dir, "memory.stat"), files.cache)))
		}
		if group == "/" {
			return room
		}
	}
}

// numberIn returns the number that a file holds; "max" is none.
func numberIn(file string) (int64, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// cached returns the number behind a name in a group's statistics, 0 if it is not there.
func cached(file, name string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
			return n
		}
	}
	return 0
}
