package sysmem_test

import (
	"testing"

	"github.com/freehold-go/freehold/internal/sysmem"
	. "github.com/freehold-go/freehold/internal/test/cgroups"
)

func TestMemory(t *testing.T) {
	const gib, mib = 1 << 30, 1 << 20
	free := func(files Tree) Tree { return files.With("proc/meminfo", "MemTotal: 4 kB\nMemAvailable: 1048576 kB\n") }
	limited := V2.With(App+"memory.max", "max", Pod+"memory.max", "104857600", Pod+"memory.current", "62914560",
		Pod+"memory.stat", "inactive_file 20971520\n")
	for _, tt := range []struct {
		name             string
		files            Tree
		physical         int64
		total, available int64
	}{
		{"a machine that tells", free(Tree{}), 4 * gib, 4 * gib, gib},
		{"one that does not tell what is available", Tree{}, 4 * gib, 4 * gib, 4 * gib},
		{"a group above the process's own, with files that can be dropped", free(limited), 4 * gib, 100 * mib, 60 * mib},
		{"a full group", free(limited.With(Pod+"memory.current", "999999999")), 4 * gib, 100 * mib, 1},
		{"a limit above the machine", free(V2.With(App+"memory.max", "99999999999", Pod+"memory.max", "max")), 4 * gib, 4 * gib, gib},
		{"no figure", free(limited), 0, 0, 0},
		{"a machine without memory", Tree{}, -1, 0, 0},
	} {
		if total, available := sysmem.MemoryOf(tt.files, func() (int64, error) { return tt.physical, nil }); total != tt.total || available != tt.available {
			t.Errorf("%s: %d, %d, want %d, %d", tt.name, total, available, tt.total, tt.available)
		}
	}
	if total, available := sysmem.Memory(); available > total {
		t.Errorf("%d bytes of %d are available", available, total)
	}
}
