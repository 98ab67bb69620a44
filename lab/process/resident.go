package process

import (
	"fmt"
	"os"
	"strings"
)

// Resident returns the bytes of physical memory that this process has. It reads the
// exact figure: /proc/self/statm lags behind on kernels that count per processor.
func Resident() (uint64, error) {
	data, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		return 0, fmt.Errorf("needs Linux's /proc to measure")
	}
	for line := range strings.Lines(string(data)) {
		var kB uint64
		if n, _ := fmt.Sscanf(line, "Rss: %d kB", &kB); n == 1 {
			return kB << 10, nil
		}
	}
	return 0, fmt.Errorf("no Rss in /proc/self/smaps_rollup")
}
