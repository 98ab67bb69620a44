//go:build unix

package atomicfile

import (
	"os"
	"syscall"
)

// keepOwner gives f the owner of another file, if that is allowed.
func keepOwner(f *os.File, of os.FileInfo) {
	if st, ok := of.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(int(st.Uid), int(st.Gid))
	}
}
