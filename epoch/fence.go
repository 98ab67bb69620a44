// Fences: when guards may be in slots, and B2.

package epoch

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/vm"
)

// slotted reports that goroutines can have a processor to themselves, and what set costs is less
// than a locked instruction.
const slotted = !pin.Locked && (runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64")

var (
	preparing sync.Once
	prepared  atomic.Bool // vm.Fence works
)

// haveFences reports whether guards may be in slots. The first call has a goroutine prepare that,
// since it takes milliseconds.
func haveFences() bool {
	if slotted && needsFence {
		preparing.Do(func() { go prepare() })
		return prepared.Load()
	}
	return slotted
}

// prepare makes fences work if the system has them.
func prepare() { prepared.Store(vm.PrepareFence() == nil) }

// fence returns when every thread has executed a full barrier. mu is held.
func fence() {
	if needsFence && vm.Fence() != nil {
		runtime.ReadMemStats(new(runtime.MemStats)) // stops the world, and starts it again
	}
}
