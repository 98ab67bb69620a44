package extsort_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/extsort"
)

func TestProgress(t *testing.T) {
	o := smallest(t)
	path := filepath.Join(t.TempDir(), "in")
	text := large()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	done := map[extsort.Phase]extsort.Progress{}
	o.Progress = func(p extsort.Progress) {
		if p.Done < done[p.Phase].Done {
			t.Errorf("%v after %v", p, done[p.Phase])
		}
		done[p.Phase] = p
	}
	if err := extsort.SortFile(context.Background(), path, o, path); err != nil {
		t.Fatal(err)
	}
	for _, phase := range []extsort.Phase{extsort.PhaseReading, extsort.PhaseWriting} {
		if p := done[phase]; p.Done != int64(len(text)) || p.Total != p.Done {
			t.Errorf("%v ended with %+v, want %d bytes", phase, p, len(text))
		}
	}
}

// Done never falls and ends at Total, with keys, several passes and equal records.
func TestProgressReachesItsTotal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in")
	times := 8
	if testing.Short() {
		times = 2
	}
	text := strings.Repeat(large(), times)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for key, o := range withKeys() {
		for _, unique := range []bool{false, true} {
			for _, memory := range []int{extsort.MinMemoryBytes, 4 << 20, 64 << 20} {
				o.MemoryBytes, o.Parallel, o.Unique, o.TempDirs = memory, 2, unique, []string{t.TempDir()}
				var last extsort.Progress
				o.Progress = func(p extsort.Progress) {
					if p.Phase == last.Phase && p.Done < last.Done || p.Done > p.Total || p.Phase != last.Phase && last.Done != last.Total {
						t.Errorf("%s, unique %t, %d bytes: %+v after %+v", key, unique, memory, p, last)
					}
					last = p
				}
				if err := extsort.SortFile(context.Background(), path+".out", o, path); err != nil {
					t.Fatal(err)
				}
				if last.Phase != extsort.PhaseWriting || last.Done != last.Total {
					t.Errorf("%s, unique %t, %d bytes: it ended with %+v", key, unique, memory, last)
				}
			}
		}
	}
}
