// Footprint: a benchmark's memory and collections.

package suite

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
)

// Footprint begins to measure b, and the returned function ends it. It reports the collections per
// operation, and the growth of the process's resident memory to its peak, in MiB, where the system
// tells it.
func Footprint(b *testing.B) (end func()) {
	debug.FreeOSMemory()
	os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // the peak begins anew; where it cannot, it is the process's
	before := status("VmRSS")
	var st runtime.MemStats
	runtime.ReadMemStats(&st)
	collections := st.NumGC
	return func() {
		runtime.ReadMemStats(&st)
		b.ReportMetric(float64(st.NumGC-collections)/float64(b.N), "GCs/op")
		if peak := status("VmHWM"); peak > 0 {
			b.ReportMetric(float64(peak-before)/1024, "peak-MiB")
		}
	}
}

// status returns a size of /proc/self/status in KiB, or 0 if there is none.
func status(field string) (kib int) {
	text, _ := os.ReadFile("/proc/self/status")
	_, line, _ := bytes.Cut(text, []byte(field+":"))
	fmt.Sscan(string(line), &kib)
	return kib
}
