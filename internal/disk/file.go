// File: the store's file, its header and its lock.
//
//	| "freehold disk tier 1\n" and zeros, 4 KiB | regions |

package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/freehold-go/freehold/internal/file/filelock"
	"github.com/freehold-go/freehold/internal/vm"
)

const (
	fileName   = "freehold.disk"
	headerText = "freehold disk tier 1\n"

	lockWait  = 500 * time.Millisecond // for a file that another store has locked
	lockPause = lockWait / 100
)

// openFile opens, locks and allocates the file of dir. fresh says that it had another size.
func openFile(dir string, size int64, sleep func(time.Duration)) (f *os.File, fresh bool, err error) {
	path := filepath.Join(dir, fileName)
	// A symbolic link might lead to another user's file, and opening a pipe waits.
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, false, fmt.Errorf("%s is no regular file", path)
	}
	if f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, false, err
	}
	if fresh, err = prepare(f, size, sleep); err != nil {
		f.Close()
		if err == filelock.ErrInUse {
			err = errors.New("another cache has it open")
		}
		var at *os.PathError
		if errors.As(err, &at) {
			err = at.Err
		}
		return nil, false, fmt.Errorf("%s: %w", path, err)
	}
	return f, fresh, nil
}

// prepare locks f, checks that it is a store's or empty, and gives it its size.
func prepare(f *os.File, size int64, sleep func(time.Duration)) (fresh bool, err error) {
	if err := lock(f, sleep); err != nil {
		return false, err
	}
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	header := make([]byte, headerBytes)
	copy(header, headerText)
	if info.Size() == 0 {
		// The header is on disk before the file grows: a file with other bytes is not a store's.
		if _, err := f.WriteAt(header, 0); err != nil {
			return false, errors.Join(err, f.Truncate(0))
		}
		if err := errors.Join(vm.SyncFile(f), filelock.SyncEntry(f)); err != nil {
			return false, err
		}
	} else {
		got := make([]byte, headerBytes)
		if n, err := f.ReadAt(got, 0); err != nil && !errors.Is(err, io.EOF) {
			return false, err
		} else if got = got[:n]; !bytes.Equal(got, header) {
			return false, fmt.Errorf("it is not the file of a disk tier: it begins with %.21q", got)
		}
	}
	if fresh = info.Size() != size; fresh {
		if info.Size() > size {
			err = f.Truncate(size)
		}
	}
	if err == nil {
		err = vm.AllocateFile(f, headerBytes, size)
	}
	return fresh, err
}

// lock locks f. If f is locked, it waits up to lockWait: the kernel ends the reads by io_uring of a
// killed process, and with them its lock, after the process has ended.
func lock(f *os.File, sleep func(time.Duration)) (err error) {
	for waited := time.Duration(0); ; waited += lockPause {
		if err = filelock.Lock(f, false); err != filelock.ErrInUse || waited >= lockWait {
			return err
		}
		sleep(lockPause)
	}
}
