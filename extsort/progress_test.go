package extsort_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/freehold-go/freehold/extsort"
)

// Done never falls and ends at Total, with keys, several passes and equal records.
func TestProgress(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in")
	for memory, times := range map[int]int{extsort.MinMemoryBytes: 3, 1 << 20: 2, 16 << 20: 1} {
		text := strings.Repeat(large(), times)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		for key, o := range withKeys() {
			for _, unique := range []bool{false, true} {
				o.MemoryBytes, o.Parallel, o.Unique, o.TempDirs = memory, 2, unique, []string{t.TempDir()}
				var last extsort.Progress
				merged := false
				o.Progress = func(p extsort.Progress) {
					if p.Phase == last.Phase && p.Done < last.Done || p.Done > p.Total || p.Phase != last.Phase && last.Done != last.Total {
						t.Errorf("%s, unique %t, %d bytes: %+v after %+v", key, unique, memory, p, last)
					}
					if p.Phase == extsort.PhaseReading && p.Total != int64(len(text)) {
						t.Errorf("%s, unique %t, %d bytes: %+v while %d bytes are read", key, unique, memory, p, len(text))
					}
					merged = merged || p.Phase == extsort.PhaseMerging
					last = p
				}
				must(t, extsort.SortFile(context.Background(), path+".out", o, path))
				if last.Phase != extsort.PhaseWriting || last.Done != last.Total || merged != (memory == extsort.MinMemoryBytes) {
					t.Errorf("%s, unique %t, %d bytes: it ended with %+v, runs merged to fewer: %t", key, unique, memory, last, merged)
				}
			}
		}
	}
}
