package pages

import "testing"

// The watermark rises by a step at each relief, by a short one if much was given back. Ticks lower
// it, but not below the committed bytes.
func TestWatermark(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		before, now int // committed
		want        int // the watermark
	}{
		{2 * mib, 2 * mib, 2*mib + leastStep},
		{2 * mib, 2*mib - leastStep, 2*mib + leastStep},
		{2 * mib, 2*mib - leastStep - 1, 2*mib + leastStep/shortShare},
		{32 * mib, 32 * mib, 33 * mib},
		{32 * mib, 30 * mib, 32*mib + mib/shortShare},
	} {
		var p Heap
		p.Init(Options{Decay: never}, nil)
		p.committed = uintptr(tt.now)
		p.RaiseWatermark(uintptr(tt.before))
		if p.watermark != uintptr(tt.want) || p.Passed() {
			t.Errorf("%d committed before, %d now: watermark %d, want %d; passed: %v", tt.before, tt.now, p.watermark, tt.want, p.Passed())
		}
		for range 200 {
			p.lowerWatermark()
		}
		if p.watermark != p.committed || p.Passed() {
			t.Errorf("%d committed: ticks lower the watermark to %d; passed: %v", p.committed, p.watermark, p.Passed())
		}
	}
}

// A heap passes its watermark when it charges for a page more.
func TestWhichHeapsPassTheirWatermark(t *testing.T) {
	for _, tt := range []struct {
		name      string
		o         Options
		committed int
		want      bool
	}{
		{"at it", Options{Decay: never}, leastWatermark - PageBytes, false},
		{"above it", Options{Decay: never}, leastWatermark, true},
		{"a large heap", Options{Decay: never}, mostWatermark, false},
		{"memory is kept", Options{Decay: -1}, leastWatermark, false},
		{"memory is returned at once", Options{Decay: never, WholePages: true}, leastWatermark, false},
	} {
		var p Heap
		p.Init(tt.o, nil)
		p.committed = uintptr(tt.committed)
		if err := p.charge(PageBytes); err != nil || p.Passed() != tt.want {
			t.Errorf("%s: passed %v, %v", tt.name, p.Passed(), err)
		}
		p.uncharge(PageBytes)
	}
}
