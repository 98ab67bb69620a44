package heap

import (
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pin"
)

// A heap without blocks takes little of the Go heap, beside its centrals and the
// slots of its caches.
func TestHeapIsSmall(t *testing.T) {
	if pin.Locked {
		t.Skip("slots are locks here, a cache line each")
	}
	const most = 9 << 10
	var h Heap
	if n := unsafe.Sizeof(h) - unsafe.Sizeof(h.small); n > most {
		t.Errorf("%d bytes, want %d at most", n, most)
	}
}
