package arena

import (
	"testing"
	"unsafe"

	"github.com/freehold-go/freehold/internal/pin"
)

// An arena without blocks takes little of the Go heap, a Shared besides its slots.
func TestArenasAreSmall(t *testing.T) {
	if size := unsafe.Sizeof(Arena{}); size > 288 {
		t.Errorf("an Arena has %d bytes", size)
	}
	if pin.Locked {
		t.Skip("slots are locks here, a cache line each")
	}
	const most = 600
	if n := unsafe.Sizeof(Shared{}); n > most {
		t.Errorf("%d bytes, want %d at most", n, most)
	}
}
