package buffer_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/freehold-go/freehold/buffer"
	"github.com/freehold-go/freehold/internal/test/filetest"
)

// Trim and Close give the disk space beyond the data back.
func TestTrimAndCloseCutTheFile(t *testing.T) {
	mapsFiles(t)
	path := filepath.Join(filetest.TempDir(t), "data")
	wantSize := func(when string, want int64) {
		t.Helper()
		if info, err := os.Stat(path); err != nil || info.Size() != want {
			t.Errorf("the file has %d bytes %s, %v, want %d", info.Size(), when, err, want)
		}
	}
	b := must1(buffer.Open(path, nil))
	must(t, b.Grow(100_000))
	must1(b.Write(pattern(1000)))
	b.Trim()
	if runtime.GOOS != "windows" { // which does not cut a mapped file
		wantSize("after Trim", headerBytes+1000)
	}
	must(t, b.Grow(100_000))
	must(t, b.Close())
	wantSize("after Close", headerBytes+1000)
}
