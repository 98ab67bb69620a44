package extsort_test

import (
	"context"
	"os"
	"path/filepath"
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
