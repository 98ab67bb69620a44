//go:build linux || darwin || dragonfly || freebsd

package vm

import (
	"testing"

	"golang.org/x/sys/unix"
)

// hasSpace is true for half of the free bytes, and false for twice of them.
func TestHasSpace(t *testing.T) {
	f := newFile(t, 0)
	var s unix.Statfs_t
	must(t, unix.Fstatfs(int(f.Fd()), &s))
	if s.Blocks == 0 || s.Bavail == 0 {
		t.Skip("a file system that does not tell, or a full one")
	}
	free := int64(s.Bsize) * int64(s.Bavail)
	if !hasSpace(f, 0) || !hasSpace(f, free/2) {
		t.Errorf("half of %d bytes are not there", free)
	}
	if hasSpace(f, 2*free+1<<20) {
		t.Errorf("twice of %d bytes are there", free)
	}
}
