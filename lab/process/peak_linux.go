// Peak: the most physical memory that a process had.

package process

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/freehold-go/freehold/internal/sysmem"
)

const self = "proc/self/status"

// ResetPeak sets the peak to the resident bytes of now, and returns them.
func ResetPeak() (uint64, error) {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return 0, err
	}
	return Peak()
}

// Peak returns the most that was resident since ResetPeak.
func Peak() (uint64, error) {
	stat, err := sysmem.Stat(sysmem.Root(), self)
	return uint64(stat["VmHWM"]), err
}

// PeakWithoutFiles returns the same less the pages of files that are resident now.
func PeakWithoutFiles() (uint64, error) {
	stat, err := sysmem.Stat(sysmem.Root(), self)
	var p peak
	p.look(stat)
	return uint64(p.bytes()), err
}

// Watch looks at the resident memory of a process now and then until the largest is asked for.
func Watch(pid int, every time.Duration) (largest func() int64) {
	file := fmt.Sprintf("proc/%d/status", pid)
	var p peak
	stop := Every(every, func() {
		stat, _ := sysmem.Stat(sysmem.Root(), file)
		p.look(stat)
	})
	return func() int64 {
		stop()
		return p.bytes()
	}
}

// peak finds the largest resident memory of a process without pages of files: the most
// that a look saw, or the most that the kernel saw less the most of the files' part. That drops
// when memory is short.
type peak struct{ now, all, files int64 }

// look takes the process's status.
func (p *peak) look(stat map[string]int64) {
	p.now = max(p.now, stat["RssAnon"]+stat["RssShmem"])
	p.all = max(p.all, stat["VmHWM"])
	p.files = max(p.files, stat["RssFile"])
}

func (p *peak) bytes() int64 { return max(p.now, p.all-p.files) }

// SyncDisks writes everything that waits for it.
func SyncDisks() { unix.Sync() }
