package prefetch

import "testing"

// TestLines: any address may be asked for, and no register or flag that the caller needs is lost.
func TestLines(t *testing.T) {
	var room [4 * LineBytes]byte
	sum := 0
	for n := 1; n <= 4; n++ {
		for _, addr := range []uintptr{0, 1, 1 << 20, ^uintptr(0) - 100} {
			Lines(addr, n)
			sum += n
		}
	}
	if sum != 40 || room != [4 * LineBytes]byte{} {
		t.Errorf("sum %d", sum)
	}
}
