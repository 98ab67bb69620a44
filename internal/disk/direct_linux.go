package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// setDirect sets whether reads and writes of f bypass the page cache (O_DIRECT). It returns the
// alignment of offsets, sizes and memory that they then need.
func setDirect(f *os.File, on bool) (align int, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	controlErr := conn.Control(func(fd uintptr) {
		var flags int
		if flags, err = unix.FcntlInt(fd, unix.F_GETFL, 0); err != nil {
			return
		}
		if flags &^= unix.O_DIRECT; on {
			flags |= unix.O_DIRECT
		}
		if _, err = unix.FcntlInt(fd, unix.F_SETFL, flags); err != nil {
			return
		}
		align = pageBytes
		var st unix.Statx_t
		if unix.Statx(int(fd), "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &st) == nil && st.Mask&unix.STATX_DIOALIGN != 0 {
			align = int(max(st.Dio_offset_align, st.Dio_mem_align))
		}
	})
	if err == nil {
		err = controlErr
	}
	if err == nil && (align == 0 || align > pageBytes || align&(align-1) != 0) {
		err = unix.EINVAL
	}
	return align, err
}
