package process

import (
	"errors"

	"github.com/freehold-go/freehold/internal/sysmem"
)

// Resident returns the bytes of physical memory that this process has. It reads the
// exact figure: /proc/self/statm lags behind on kernels that count per processor.
func Resident() (uint64, error) {
	stat, _ := sysmem.Stat(sysmem.Root(), "proc/self/smaps_rollup")
	if n := stat["Rss"]; n > 0 {
		return uint64(n), nil
	}
	return 0, errors.New("needs Linux's /proc to measure")
}
