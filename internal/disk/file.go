// File: the store's file, its header and its lock.
//
//	| "freehold disk tier 1\n" and zeros, 4 KiB | regions |

package disk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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

// openFile opens or creates the file in dir, locks it, and allocates its disk space. fresh reports
// that the regions are unusable: the file is new, had another size, or had a damaged header.
func openFile(dir string, size int64, sleep func(time.Duration), logger *slog.Logger) (f *os.File, fresh bool, err error) {
	path := filepath.Join(dir, fileName)
	// A symbolic link might lead to another user's file, and opening a pipe waits.
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, false, fmt.Errorf("%s is no regular file", path)
	}
	if f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, false, err
	}
	if fresh, err = prepare(f, size, sleep, logger); err != nil {
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

// prepare locks f, checks its header, and gives it its size. It replaces a header that is damaged
// after its text. It logs why the store begins empty, unless the file is new.
func prepare(f *os.File, size int64, sleep func(time.Duration), logger *slog.Logger) (fresh bool, err error) {
	if err := lock(f, sleep); err != nil {
		return false, err
	}
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	header, got := make([]byte, headerBytes), make([]byte, headerBytes)
	copy(header, headerText)
	n, err := f.ReadAt(got, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	switch got = got[:n]; {
	case bytes.Equal(got, header):
		if fresh = info.Size() != size; fresh {
			logEmpty(logger, f, errors.New("its file had another size"))
		}
	case bytes.HasPrefix(got, []byte(headerText)), bytes.HasPrefix(header, got): // a store's
		if n > 0 {
			logEmpty(logger, f, errors.New("its header is damaged"))
		}
		fresh = true
		// Sync the header before the file grows: after a crash in between, a file without the
		// header would be refused as not a store's.
		if _, err := f.WriteAt(header, 0); err != nil {
			return false, errors.Join(err, f.Truncate(0))
		}
		if err := errors.Join(vm.SyncFile(f), filelock.SyncEntry(f.Name())); err != nil {
			return false, err
		}
	default:
		return false, fmt.Errorf("it is not the file of a disk tier, or its header is damaged: it begins with %.21q; remove it, or use another directory", got)
	}
	err = nil
	if info.Size() > size {
		err = f.Truncate(size)
	}
	if err == nil {
		err = vm.AllocateFile(f, headerBytes, size)
	}
	return fresh, err
}

// logEmpty logs why a store begins empty although it had a file.
func logEmpty(logger *slog.Logger, f *os.File, reason error) {
	if logger != nil {
		logger.LogAttrs(context.Background(), slog.LevelWarn, "freehold: the disk tier begins empty",
			slog.String("file", f.Name()), slog.Any("reason", reason))
	}
}

// lock locks f, and waits up to lockWait for another holder. A killed process may hold the lock for
// some milliseconds after its end, until the kernel has closed its io_uring.
func lock(f *os.File, sleep func(time.Duration)) (err error) {
	for waited := time.Duration(0); ; waited += lockPause {
		if err = filelock.Lock(f, false); err != filelock.ErrInUse || waited >= lockWait {
			return err
		}
		sleep(lockPause)
	}
}
