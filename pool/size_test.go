package pool

import (
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pin"
)

// A pool without blocks takes little of the Go heap besides its slots.
func TestBlocksAreSmall(t *testing.T) {
	if pin.Locked {
		t.Skip("slots are locks here, a cache line each")
	}
	const most = 600
	if n := unsafe.Sizeof(Blocks{}); n > most {
		t.Errorf("%d bytes, want %d at most", n, most)
	}
}
