package guardlog

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/freehold-go/freehold/internal/vm"
)

// shared returns size bytes of zeros in shared memory, and a file with which other processes map
// it.
func shared(size uintptr) (uintptr, *os.File, error) {
	fd, err := unix.MemfdCreate("freehold guards", unix.MFD_CLOEXEC)
	if err != nil {
		return 0, nil, err
	}
	file := os.NewFile(uintptr(fd), "freehold guards")
	var at uintptr
	if err = file.Truncate(int64(size)); err == nil {
		at, err = vm.MapFile(file, size, true)
	}
	if err != nil {
		file.Close()
		return 0, nil, err
	}
	return at, file, nil
}
