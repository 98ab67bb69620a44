//go:build unix

package atomicfile

import (
	"io/fs"
	"os"
	"syscall"
)

// keepAttributes copies the old file's owner and group to f, or the group alone if the owner is
// refused, and its mode and extended attributes.
func (f *File) keepAttributes() error {
	if st, ok := f.old.Sys().(*syscall.Stat_t); ok && f.Chown(int(st.Uid), int(st.Gid)) != nil {
		_ = f.Chown(-1, int(st.Gid))
	}
	kept := fs.ModePerm | fs.ModeSticky
	if os.Geteuid() == 0 {
		kept |= fs.ModeSetuid | fs.ModeSetgid
	}
	if err := f.Chmod(f.old.Mode() & kept); err != nil {
		return err
	}
	return copyXattrs(f.File, f.path)
}
