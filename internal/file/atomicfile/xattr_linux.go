package atomicfile

import (
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// accessList is the attribute with a file's access control list. A directory may give a default
// list to new files.
const accessList = "system.posix_acl_access"

// copyXattrs copies the access control list of the file at path to f, or removes f's if there is
// none, and the attributes in the user namespace. With a list, the mode's group bits are the
// list's mask; without one they are the group's permissions.
func copyXattrs(f *os.File, path string) error {
	fd := int(f.Fd())
	listed, err := xattr(func(to []byte) (int, error) { return unix.Listxattr(path, to) })
	switch err {
	case nil, unix.ENOTSUP:
	case unix.ENOENT: // it was removed after Create
		return nil
	default:
		return &os.PathError{Op: "listxattr", Path: path, Err: err}
	}
	names := strings.Split(string(listed), "\x00")
	for _, name := range names {
		if name != accessList && !strings.HasPrefix(name, "user.") {
			continue
		}
		value, err := xattr(func(to []byte) (int, error) { return unix.Getxattr(path, name, to) })
		if err == unix.EACCES { // the file may be written, but not read
			continue
		}
		if err == nil {
			err = unix.Fsetxattr(fd, name, value, 0)
		}
		if err != nil {
			return &os.PathError{Op: "copy attribute " + name, Path: path, Err: err}
		}
	}
	if slices.Contains(names, accessList) {
		return nil
	}
	switch err := unix.Fremovexattr(fd, accessList); err {
	case nil, unix.ENODATA, unix.ENOTSUP:
		return nil
	default:
		return &os.PathError{Op: "remove attribute " + accessList, Path: path, Err: err}
	}
}

// xattr returns the bytes that get fills in. With an empty slice, get returns the size.
func xattr(get func(to []byte) (int, error)) ([]byte, error) {
	for {
		size, err := get(nil)
		if err != nil || size == 0 {
			return nil, err
		}
		to := make([]byte, size)
		n, err := get(to)
		if err != unix.ERANGE { // ERANGE: it has grown meanwhile
			return to[:max(n, 0)], err
		}
	}
}
