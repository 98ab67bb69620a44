// Fences: asymmetric barriers (membarrier), which let guards be in slots; B2 of epoch.go.

package epoch

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/pin"
	"github.com/freehold-go/freehold/internal/vm"
)

// slotted reports that goroutines can hold a processor exclusively, and that set is cheaper than a
// locked instruction.
const slotted = !pin.Locked && (runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64")

var (
	preparing sync.Once
	prepared  atomic.Bool // vm.Fence works
)

// haveFences reports whether guards may be in slots. The first call starts a goroutine that
// prepares the fences, since that takes milliseconds.
func haveFences() bool {
	if slotted && needsFence {
		preparing.Do(func() { go prepare() })
		return prepared.Load()
	}
	return slotted
}

// prepare enables fences if the system has them.
func prepare() { prepared.Store(vm.PrepareFence() == nil) }

// fence returns once every thread has executed a full barrier. mu is held.
func fence() {
	if needsFence && vm.Fence() != nil {
		runtime.ReadMemStats(new(runtime.MemStats)) // stops the world, and starts it again
	}
}
