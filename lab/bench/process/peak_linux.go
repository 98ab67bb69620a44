// Peak: the most physical memory that a process had.

package process

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// ResetPeak makes the peak what is resident now, and returns that.
func ResetPeak() (uint64, error) {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return 0, err
	}
	return Peak()
}

// Peak returns the most that was resident since ResetPeak.
func Peak() (uint64, error) {
	at, err := statusOf(os.Getpid())
	return at.peak, err
}

// PeakOf returns the peak of a process without the pages of files that it has now.
func PeakOf(pid int) (uint64, error) {
	at, err := statusOf(pid)
	return at.peak - min(at.file, at.peak), err
}

// status is in bytes.
type status struct{ peak, file uint64 }

func statusOf(pid int) (s status, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return s, err
	}
	for line := range strings.Lines(string(data)) {
		var kB uint64
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kB); n == 1 {
			s.peak = kB << 10
		}
		if n, _ := fmt.Sscanf(line, "RssFile: %d kB", &kB); n == 1 {
			s.file = kB << 10
		}
	}
	return s, nil
}

// SyncDisks writes everything that waits for it.
func SyncDisks() { unix.Sync() }
