package pressure

import (
	"errors"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/internal/sysmem"
)

var errNoFigure = errors.New("no figure")

func TestFindLimit(t *testing.T) {
	tests := []struct {
		name     string
		option   int64
		variable string
		files    tree
		physical int64 // 0 is an error
		bytes    int64
		source   string
		problem  string
	}{
		{"option", 500, "1GiB", v2, 4000000, 500, "Options.Limit", ""},
		{"option above the cgroup's", 1 << 21, "", v2, 4 << 20, 1000000, "/sys/fs/cgroup/pod/app/memory.max", "Options.Limit of 2MiB is above the 976.6KiB of /sys/fs/cgroup/pod/app/memory.max"},
		{"option of the cgroup's size", 1000000, "", v2, 4 << 20, 1000000, "Options.Limit", ""},
		{"option above the machine", 1 << 21, "", tree{}, 1 << 20, 1 << 20, "physical memory", "Options.Limit of 2MiB is above the 1MiB of physical memory"},
		{"option above both", 1 << 21, "", v2, 1 << 20, 1000000, "/sys/fs/cgroup/pod/app/memory.max", "above the 976.6KiB of /sys"},
		{"option above both, and the machine is less", 1 << 21, "", v2, 900 << 10, 900 << 10, "physical memory", "above the 900KiB of physical memory"},
		{"option above all, of version 2", math.MaxInt64, "", v2.With(app+"memory.max", "max", pod+"memory.max", "max"), 0, math.MaxInt64, "Options.Limit", ""},
		{"option above all, of version 1", math.MaxInt64, "", v1.With(v1group+"memory.limit_in_bytes", "9223372036854771712", v1group+"memory.stat", "hierarchical_memory_limit 9223372036854771712"), 0, math.MaxInt64, "Options.Limit", ""},
		{"option where nothing is known", 500, "", tree{}, 0, 500, "Options.Limit", ""},
		{"variable", 0, "900KiB", v2, 4000000, 900 << 10, "FREEHOLD_MEMORY_LIMIT", ""},
		{"variable above the cgroup's", 0, "1MiB", v2, 4000000, 1000000, "/sys/fs/cgroup/pod/app/memory.max", "FREEHOLD_MEMORY_LIMIT of 1MiB is above the 976.6KiB of"},
		{"variable is empty", 0, "", v2, 4000000, 1000000, "/sys/fs/cgroup/pod/app/memory.max", ""},
		{"variable is malformed", 0, "1GB", v2, 4000000, 0, "", `FREEHOLD_MEMORY_LIMIT: "1GB", want a size above 0 in B, KiB, MiB, GiB or TiB, such as 512MiB`},
		{"variable is 0", 0, "0", v2, 4000000, 0, "", `FREEHOLD_MEMORY_LIMIT: "0", want`},
		{"variable is negative", 0, "-5MiB", v2, 4000000, 0, "", "FREEHOLD_MEMORY_LIMIT: "},
		{"cgroup", 0, "", v2, 4000000, 1000000, "/sys/fs/cgroup/pod/app/memory.max", ""},
		{"cgroup, physical memory is unknown", 0, "", v2, 0, 1000000, "/sys/fs/cgroup/pod/app/memory.max", ""},
		{"cgroup above physical memory", 0, "", v2, 1000000, 750000, "3/4 of physical memory", ""},
		{"cgroup is malformed", 0, "", v2.With(app+"memory.max", "?", pod+"memory.max", "?"), 4000000, 3000000, "3/4 of physical memory", `memory.max: "?", want`},
		{"no cgroups", 0, "", tree{}, 4000000, 3000000, "3/4 of physical memory", ""},
		{"a machine without memory", 0, "", tree{}, -1, 0, "", "physical memory: -1 bytes"},
		{"nothing", 0, "", tree{}, 0, 0, "", "set Options.Limit or FREEHOLD_MEMORY_LIMIT; physical memory: no figure"},
		{"nothing, and a malformed cgroup", 0, "", v2.With(app+"memory.max", "?", pod+"memory.max", "max"), 0, 0, "", `memory.max: "?", want`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := machineOf(tt.files, tt.variable, tt.physical).findLimit(tt.option, nil)
			if got.bytes != tt.bytes || got.source != tt.source {
				t.Errorf("limit is %d of %s, want %d of %s", got.bytes, got.source, tt.bytes, tt.source)
			}
			if text(err) == "" != (tt.problem == "") || !strings.Contains(text(err), tt.problem) {
				t.Errorf("problem is %v, want %q", err, tt.problem)
			}
			if noSource := tt.bytes == 0 && tt.variable == ""; errors.Is(err, ErrNoLimit) != noSource {
				t.Errorf("error %v matches ErrNoLimit: %t", err, !noSource)
			}
		})
	}
}

// An explicit limit that equals the container's counts the memory of the container.
func TestLimitOfTheCgroupsSizeIsTheCgroups(t *testing.T) {
	for option, want := range map[int64]bool{1000000: true, 999999: false} {
		got, err := machineOf(v2, "", 4000000).findLimit(option, nil)
		if (got.group != nil) != want || err != nil {
			t.Errorf("%d: %+v, %v", option, got, err)
		}
	}
}

// A cgroup's limit that did not count before is known when it does, and its file is unreadable.
func TestLimitOfAGroupIsKnownWhileALowerOneHolds(t *testing.T) {
	first, err := machineOf(v2, "", 4000000).findLimit(500, nil)
	if err != nil || first.bytes != 500 {
		t.Errorf("%+v, %v", first, err)
	}
	files := v2.With(app+"memory.max", unreadable)
	if got, err := machineOf(files, "", 4000000).findLimit(1500000, first.groups); got.bytes != 1000000 || err == nil {
		t.Errorf("%+v, %v", got, err)
	}
}

// growing is a tree whose file memory.usage_in_bytes grows while it is read.
type growing struct {
	tree
	used *int
}

func (g growing) Open(name string) (fs.File, error) {
	if strings.HasSuffix(name, "memory.usage_in_bytes") {
		*g.used++
		return g.With(name, strconv.Itoa(*g.used)).Open(name)
	}
	return g.tree.Open(name)
}

// Two equal limits of a level are compared with the same use, so their order decides.
func TestLimitsOfALevelCompare(t *testing.T) {
	files := growing{v1.With(v1group+"memory.stat", "hierarchical_memory_limit 1000000\n"), new(int)}
	got, err := Machine{Files: files}.groupLimit(1<<30, nil)
	if want := "/" + v1group + "memory.limit_in_bytes"; got.source != want || err != nil {
		t.Errorf("limit of %s, %v, want %s", got.source, err, want)
	}
}

func machineOf(files tree, variable string, physical int64) Machine {
	return Machine{
		Files:     files,
		LookupEnv: func(name string) (string, bool) { return variable, name == Environment && variable != "" },
		Physical: func() (int64, error) {
			if physical == 0 {
				return 0, errNoFigure
			}
			return physical, nil
		},
	}
}

func TestPhysicalMemory(t *testing.T) {
	n, err := sysmem.Physical()
	if err != nil {
		t.Skip(err)
	}
	if n < 16<<20 || n > 1<<50 {
		t.Errorf("physical memory is %d bytes", n)
	}
}
