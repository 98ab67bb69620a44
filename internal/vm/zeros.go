// Zeros: ExtendFile by writing, for file systems that cannot allocate disk space.

package vm

import (
	"bytes"
	"os"
	"syscall"
)

// writeZeros makes f, which has size bytes, at least to bytes long, and fills its holes from the
// given offset on. It fails early if the disk has too little room.
func writeZeros(f *os.File, from, size, to int64) error {
	if to > size && !hasSpace(f, to-size) {
		return syscall.ENOSPC
	}
	if isSparse(f) {
		if err := fillHoles(f, from, min(size, to)); err != nil {
			return err
		}
	}
	zeros := make([]byte, 1<<20)
	for at := size; at < to; at += int64(len(zeros)) {
		if _, err := f.WriteAt(zeros[:min(int64(len(zeros)), to-at)], at); err != nil {
			return err
		}
	}
	return nil
}

// fillHoles writes zeros over blocks of zeros, which may be holes.
func fillHoles(f *os.File, from, to int64) error {
	var data, zeros [4096]byte // no file system has smaller holes
	for at := from; at < to; {
		n := min(int64(len(data))-at%int64(len(data)), to-at)
		if _, err := f.ReadAt(data[:n], at); err != nil {
			return err
		}
		if bytes.Equal(data[:n], zeros[:n]) {
			if _, err := f.WriteAt(zeros[:n], at); err != nil {
				return err
			}
		}
		at += n
	}
	return nil
}
