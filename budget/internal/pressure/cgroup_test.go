// Cgroups: every kind of file that a process may find about itself.

package pressure

import (
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/internal/sysmem"
	"github.com/freehold-go/freehold/internal/test/cgroups"
)

type tree = cgroups.Tree

var v1, v2 = cgroups.V1, cgroups.V2

const (
	unreadable = cgroups.Unreadable
	pod        = cgroups.Pod
	app        = cgroups.App
	v1group    = cgroups.V1Group
	mounts     = cgroups.Mounts
	groups     = cgroups.Groups
)

func TestGroupLimit(t *testing.T) {
	tests := []struct {
		name    string
		files   tree
		bytes   int64 // 0: none
		source  string
		used    int64
		problem string // a part of it
	}{
		{"v2", v2, 1000000, "/" + app + "memory.max", 220, ""},
		{"v2, memory.high is lower", v2.With(app+"memory.high", "900000\n"), 900000, "/" + app + "memory.high", 220, ""},
		{"v2, the parent is lower", v2.With(pod+"memory.max", "500000\n"), 500000, "/" + pod + "memory.max", 0, ""},
		{"v2, the parent is higher and fuller", v2.With(pod+"memory.current", "1500000\n"), 2000000, "/" + pod + "memory.max", 1500000, ""},
		{"v2, all max", v2.With(app+"memory.max", "max\n", pod+"memory.max", "max\n"), 0, "", 0, ""},
		{"v2, no files", v2.With(app+"memory.max", "", app+"memory.high", "", pod+"memory.max", "", pod+"memory.high", ""), 0, "", 0, ""},
		{"v2, own files are missing", v2.With(app+"memory.max", "", app+"memory.high", ""), 2000000, "/" + pod + "memory.max", 0, ""},
		{"v2, unreadable", v2.With(app+"memory.max", unreadable), 2000000, "/" + pod + "memory.max", 0, "/" + app + "memory.max: permission denied"},
		{"v2, malformed", v2.With(app+"memory.max", "lots\n"), 2000000, "/" + pod + "memory.max", 0, `memory.max: "lots", want a number of bytes above 0, or max`},
		{"v2, empty", v2.With(app+"memory.max", "\n"), 2000000, "/" + pod + "memory.max", 0, `memory.max: "", want`},
		{"v2, negative", v2.With(app+"memory.max", "-1\n"), 2000000, "/" + pod + "memory.max", 0, `"-1", want`},
		{"v2, zero", v2.With(app+"memory.max", "0\n"), 2000000, "/" + pod + "memory.max", 0, `"0", want`},
		{"v2, more than 64 bits", v2.With(app+"memory.max", "99999999999999999999\n"), 2000000, "/" + pod + "memory.max", 0, `"99999999999999999999", want`},
		{"v2, as many as 64 bits have", v2.With(app+"memory.max", "18446744073709551615\n"), 2000000, "/" + pod + "memory.max", 0, ""},
		{"v2, above the machine", v2.With(app+"memory.max", "3000000000\n"), 2000000, "/" + pod + "memory.max", 0, ""},
		{"v2, figures are missing", v2.With(app+"memory.current", "", app+"memory.stat", ""), 1000000, "/" + app + "memory.max", 0, ""},
		{"v2, figures are beyond all memory", v2.With(app+"memory.current", "9223372036854775807\n"), 1000000, "/" + app + "memory.max", 0, ""},
		{"v2, figures are malformed", v2.With(app+"memory.current", "x\n"), 1000000, "/" + app + "memory.max", 0, ""},
		{"v2, stat is malformed", v2.With(app+"memory.stat", "anon\nactive_file -5\ninactive_file x\n\n \nslab_reclaimable 70"), 1000000, "/" + app + "memory.max", 330, ""},
		{"v2, more cache than memory", v2.With(app+"memory.stat", "active_file 5000\n"), 1000000, "/" + app + "memory.max", 0, ""},
		{"v2, a namespace of its own", v2.With(groups, "0::/\n", "sys/fs/cgroup/memory.max", "300000\n"), 300000, "/sys/fs/cgroup/memory.max", 0, ""},
		{"v2, the mount is of the parent", v2.With(mounts, "31 24 0:27 /pod /cg rw - cgroup2 cgroup2 rw\n", "cg/app/memory.max", "300000", "cg/memory.max", "400000"), 300000, "/cg/app/memory.max", 0, ""},
		{"v2, the mount is of the group", v2.With(mounts, "31 24 0:27 /pod/app /cg rw - cgroup2 cgroup2 rw\n", "cg/memory.max", "300000"), 300000, "/cg/memory.max", 0, ""},
		{"v2, the mount is of another group", v2.With(mounts, "31 24 0:27 /pod/ap /cg rw - cgroup2 cgroup2 rw\n", "cg/memory.max", "300000"), 0, "", 0, "no mount of the cgroup /pod/app"},
		{"v2, the mount is above the namespace", v2.With(groups, "0::/\n", mounts, "31 24 0:27 /../.. /cg rw - cgroup2 cgroup2 rw\n", "cg/memory.max", "300000"), 300000, "/cg/memory.max", 0, ""},
		{"v2, the group is outside of the namespace", v2.With(groups, "0::/../other\n"), 0, "", 0, "no mount of the cgroup /../other"},
		{"v2, the group was removed", v2.With(groups, "0::/pod/app (deleted)\n"), 2000000, "/" + pod + "memory.max", 0, ""},
		{"v2, the mount point has a space", v2.With(mounts, `31 24 0:27 /pod /a\040b rw - cgroup2 cgroup2 rw`, "a b/app/memory.max", "300000"), 300000, "/a b/app/memory.max", 0, ""},
		{"v2, the mount point ends in a space", v2.With(mounts, `31 24 0:27 /pod /a\040 rw - cgroup2 cgroup2 rw`, "a /app/memory.max", "300000"), 300000, "/a /app/memory.max", 0, ""},
		{"v2, the group has a colon", v2.With(groups, "0::/pod:1/app\n", "sys/fs/cgroup/pod:1/app/memory.max", "300000"), 300000, "/sys/fs/cgroup/pod:1/app/memory.max", 0, ""},
		{"v2, mounted at the root", v2.With(mounts, "31 24 0:27 /pod / rw - cgroup2 cgroup2 rw\n", "app/memory.max", "300000", "memory.max", "400000"), 300000, "/app/memory.max", 0, ""},
		{"v2, mounted twice", v2.With(mounts, v2[mounts]+"31 24 0:27 /pod /cg rw - cgroup2 cgroup2 rw\n", "cg/app/memory.max", "1000000"), 1000000, "/" + app + "memory.max", 220, ""},
		{"v2, a file above the mount point", v2.With("sys/fs/memory.max", "1000"), 1000000, "/" + app + "memory.max", 220, ""},
		{"v2, lines that are malformed", v2.With(mounts, "\n-\n - cgroup2\n1 2 3\n1 2 3 4 5 6 -\n"+v2[mounts]+`1 2 3 /\0 /\999 rw - cgroup2`, groups, "\n0\n0:\n0:::\n"+v2[groups]+"0::relative\n"), 1000000, "/" + app + "memory.max", 220, ""},
		{"no mount", v2.With(mounts, "\n"), 0, "", 0, "/proc/self/mountinfo has no mount of the cgroup /pod/app"},
		{"no /proc", tree{}, 0, "", 0, ""},
		{"no mountinfo", v2.With(mounts, ""), 0, "", 0, ""},
		{"/proc is unreadable", v2.With(groups, unreadable), 0, "", 0, "permission denied"},
		{"no groups", v2.With(groups, "\n"), 0, "", 0, ""},

		{"v1", v1, 1000000, "/" + v1group + "memory.limit_in_bytes", 350, ""},
		{"v1, none", v1.With(v1group+"memory.limit_in_bytes", "9223372036854771712\n"), 0, "", 0, ""},
		{"v1, none on 32 bits", v1.With(v1group+"memory.limit_in_bytes", "8796093018112\n"), 0, "", 0, ""},
		{"v1, -1", v1.With(v1group+"memory.limit_in_bytes", "-1\n"), 0, "", 0, `"-1", want`},
		{"v1, unreadable", v1.With(v1group+"memory.limit_in_bytes", unreadable), 0, "", 0, "permission denied"},
		{"v1, a hidden parent is lower", v1.With(v1group+"memory.stat", "hierarchical_memory_limit 600000\n"), 600000, "/" + v1group + "memory.stat", 400, ""},
		{"v1, nothing of hidden parents", v1.With(v1group+"memory.stat", "cache 9\n"), 1000000, "/" + v1group + "memory.limit_in_bytes", 400, ""},
		{"v1, a group below", v1.With(groups, "4:memory:/docker/abc/sub\n", v1group+"sub/memory.limit_in_bytes", "2000000\n"), 1000000, "/" + v1group + "memory.limit_in_bytes", 350, ""},
		{"v1, memory is not mounted", v1.With(mounts, "32 24 0:28 / /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n"), 0, "", 0, "no mount of the cgroup /docker/abc"},
		{"v1 and v2", v1.With(mounts, v1[mounts]+"33 24 0:29 / /sys/fs/cgroup/unified ro - cgroup2 cgroup2 rw\n"), 1000000, "/" + v1group + "memory.limit_in_bytes", 350, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := Machine{Files: tt.files}
			got, err := m.groupLimit(1<<30, nil)
			if got.bytes != tt.bytes || got.source != tt.source {
				t.Errorf("limit is %d of %s, want %d of %s", got.bytes, got.source, tt.bytes, tt.source)
			}
			if text(err) == "" != (tt.problem == "") || !strings.Contains(text(err), tt.problem) {
				t.Errorf("problem is %v, want %q", err, tt.problem)
			}
			if used := m.residentOf(got); used != tt.used {
				t.Errorf("used is %d, want %d", used, tt.used)
			}
		})
	}
}

// Each row is a search after those above it.
func TestLimitsThatCannotBeUnderstoodStay(t *testing.T) {
	small := v2.With(app+"memory.max", "500000", pod+"memory.max", "900000")
	lost := small.With(app+"memory.max", unreadable)
	hidden := v1.With(v1group+"memory.stat", "hierarchical_memory_limit 600000\n")
	elsewhere := lost.With(groups, "0::/pod/new\n", pod+"new/memory.max", "max")
	tests := []struct {
		name    string
		files   tree
		bytes   int64
		source  string
		problem bool
	}{
		{"the first", small, 500000, "/" + app + "memory.max", false},
		{"unreadable", lost, 500000, "/" + app + "memory.max", true},
		{"malformed", lost.With(app+"memory.max", "?"), 500000, "/" + app + "memory.max", true},
		{"the parent's falls", lost.With(pod+"memory.max", "400000"), 400000, "/" + pod + "memory.max", true},
		{"the parent's rises", lost, 500000, "/" + app + "memory.max", true},
		{"neither can be read", lost.With(pod+"memory.max", "?"), 500000, "/" + app + "memory.max", true},
		{"the group is not known", lost.With(groups, unreadable), 500000, "/" + app + "memory.max", true},
		{"the group's files are not there", small.With(mounts, "\n"), 500000, "/" + app + "memory.max", true},
		{"well-formed", small.With(app+"memory.max", "600000"), 600000, "/" + app + "memory.max", false},
		{"moved", elsewhere, 900000, "/" + pod + "memory.max", false},
		{"moved back", lost, 900000, "/" + pod + "memory.max", true},
		{"the first again", small, 500000, "/" + app + "memory.max", false},
		{"no file", small.With(app+"memory.max", ""), 900000, "/" + pod + "memory.max", false},
		{"unreadable after no limit", lost, 900000, "/" + pod + "memory.max", true},
		{"nothing is there, as after chroot", tree{}, 900000, "/" + pod + "memory.max", true},

		{"version 1", hidden, 600000, "/" + v1group + "memory.stat", false},
		{"version 1, unreadable", hidden.With(v1group+"memory.stat", unreadable), 600000, "/" + v1group + "memory.stat", true},
		{"version 1, no file", hidden.With(v1group+"memory.stat", ""), 1000000, "/" + v1group + "memory.limit_in_bytes", false},
	}
	var before []sysmem.Limit
	for _, tt := range tests {
		got, err := Machine{Files: tt.files}.groupLimit(1<<30, before)
		if got.bytes != tt.bytes || got.source != tt.source || (err != nil) != tt.problem {
			t.Errorf("%s: limit is %d of %s, %v, want %d of %s", tt.name, got.bytes, got.source, err, tt.bytes, tt.source)
		}
		before = got.groups
	}
}

func TestResidentBytes(t *testing.T) {
	tests := []struct {
		status string
		want   int64
	}{
		{"Name:\tx\nVmRSS:\t   70 kB\nRssAnon:\t   40 kB\nRssFile:\t   20 kB\nRssShmem:\t   10 kB\n", 50 << 10},
		{"RssAnon:\t40 kB", 40 << 10},
		{"RssAnon: -1 kB\n", 0},
		{"RssAnon: 40 MB\n", 0},
		{"RssAnon: 9223372036854775807 kB\n", 0},
		{"RssAnon\n", 0},
		{"VmRSS: 70 kB\n", 0},
		{"", 0},
		{unreadable, 0},
	}
	for _, tt := range tests {
		if n := residentBytes(tree{"proc/self/status": tt.status}); n != tt.want {
			t.Errorf("%q: %d, want %d", tt.status, n, tt.want)
		}
	}
}

// FuzzGroupLimit: whatever the files hold, there is a limit above 0, or none.
func FuzzGroupLimit(f *testing.F) {
	for _, files := range []tree{v1, v2} {
		names := slices.Sorted(maps.Keys(files))
		max := names[slices.IndexFunc(names, func(s string) bool { return strings.Contains(s, "memory.max") || strings.Contains(s, "limit_in") })]
		f.Add(files[groups], files[mounts], max, files[max])
	}
	f.Add("0::/\n", `1 2 3 / /\134 rw - cgroup2 x`, `\/memory.max`, "max")
	f.Fuzz(func(t *testing.T, group, mount, file, content string) {
		if !fs.ValidPath(file) {
			t.Skip()
		}
		m := Machine{Files: tree{groups: group, mounts: mount, file: content}}
		got, _ := m.groupLimit(sysmem.NoLimit, nil)
		if got.bytes < 0 || got.bytes >= sysmem.NoLimit || got.bytes > 0 != (got.source != "") {
			t.Errorf("limit is %d of %q", got.bytes, got.source)
		}
		if m.residentOf(got) < 0 {
			t.Error("used is negative")
		}
	})
}
