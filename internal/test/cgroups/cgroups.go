// Package cgroups provides file trees of processes in control groups, for tests.
package cgroups

import (
	"io/fs"
	"maps"
	"testing/fstest"
)

// Tree is a file system: each file's text by its path. Reading a file with the text Unreadable
// fails.
type Tree map[string]string

// Unreadable is the text of a file that cannot be read.
const Unreadable = "\x00"

func (t Tree) Open(name string) (fs.File, error) {
	files := fstest.MapFS{}
	for path, text := range t {
		if path == name && text == Unreadable {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
		}
		files[path] = &fstest.MapFile{Data: []byte(text)}
	}
	return files.Open(name)
}

// With returns the tree with files added. A file with the text "" is removed.
func (t Tree) With(pairs ...string) Tree {
	t = maps.Clone(t)
	for i := 0; i < len(pairs); i += 2 {
		t[pairs[i]] = pairs[i+1]
		if pairs[i+1] == "" {
			delete(t, pairs[i])
		}
	}
	return t
}

// V2 is a process in /pod/app, with a limit of version 2 at each level.
var V2 = Tree{
	"proc/self/cgroup": "0::/pod/app\n",
	"proc/self/mountinfo": "22 27 0:21 / /proc rw,relatime - proc proc rw\n" +
		"31 24 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n",
	"sys/fs/cgroup/pod/app/memory.max":     "1000000\n",
	"sys/fs/cgroup/pod/app/memory.high":    "max\n",
	"sys/fs/cgroup/pod/app/memory.current": "400\n",
	"sys/fs/cgroup/pod/app/memory.stat":    "anon 100\nactive_file 50\ninactive_file 60\nslab_reclaimable 70\n",
	"sys/fs/cgroup/pod/memory.max":         "2000000\n",
	"sys/fs/cgroup/pod/memory.high":        "max\n",
}

// V1 is a process in a container, with a limit of version 1.
var V1 = Tree{
	"proc/self/cgroup": "9:name=systemd:/\n4:cpu,memory:/docker/abc\n0::/\n",
	"proc/self/mountinfo": "31 24 0:27 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n" +
		"32 24 0:28 / /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n",
	"sys/fs/cgroup/memory/memory.limit_in_bytes": "1000000\n",
	"sys/fs/cgroup/memory/memory.usage_in_bytes": "400\n",
	"sys/fs/cgroup/memory/memory.stat": "cache 9\nhierarchical_memory_limit 9223372036854771712\n" +
		"total_active_file 30\ntotal_inactive_file 20\n",
}

// Paths in V2 and V1.
const (
	Pod     = "sys/fs/cgroup/pod/"
	App     = "sys/fs/cgroup/pod/app/"
	V1Group = "sys/fs/cgroup/memory/"
	Mounts  = "proc/self/mountinfo"
	Groups  = "proc/self/cgroup"
)
