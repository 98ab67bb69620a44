package cache

import (
	"math/rand/v2"
	"testing"
)

// TestExpiryBins: passed counts only expired bytes, and all bytes that expired a bin's width ago.
func TestExpiryBins(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, ttl := range []uint32{1, 10, 16, 17, 60, 256, 300, 1 << 20} {
		var x expiry
		const now = 1000
		x.begin(now, ttl)
		last := uint32(min(uint64(now)+uint64(ttl), uint64(x.born)+uint64(x.width)*(bins-1)-1))
		expires := make([]uint32, 50)
		for i := range expires {
			expires[i] = now + 1 + r.Uint32N(last-now)
			x.add(expires[i], 1)
		}
		x.add(0, 1) // never
		for at := uint32(now); at < last+2*x.width; at += 1 + ttl/500 {
			over, surely := uint32(0), uint32(0)
			for _, e := range expires {
				if e <= at {
					over++
				}
				if e+x.width <= at {
					surely++
				}
			}
			if got := x.passed(at); got > over || got < surely {
				t.Fatalf("TTL %d: at %d %d have expired, and %d long ago, but %d are counted", ttl, at, over, surely, got)
			}
		}
		if got := x.passed(last + x.width); got != uint32(len(expires)) {
			t.Errorf("TTL %d: %d of %d have expired in the end", ttl, got, len(expires))
		}
		if class := classOf(ttl); class < classes-1 && x.bin(now+classTTL[class]) == &x.bins[bins-1] {
			t.Errorf("TTL %d: the longest of the class is beyond the bins", ttl)
		}
	}
}

// TestBinsAreNarrow: passed counts an item soon after it has expired, if the item was stored up to
// half of the class's longest TTL after the first item. Soon is within 23% of that TTL. For the
// last class it is within 30% of the first item's TTL.
func TestBinsAreNarrow(t *testing.T) {
	for _, ttl := range []uint32{16, 64, 256, 1000, 1 << 20} {
		soon := ttl*23/100 + 1
		if ttl > classTTL[classes-2] {
			soon = ttl*30/100 + 1
		}
		const now = 1000
		for step := range uint32(50) {
			var x expiry
			x.begin(now, ttl)
			expires := now + ttl + step*ttl/100
			x.add(expires, 1)
			if before, then := x.passed(expires-1), x.passed(expires+soon); before != 0 || then != 1 {
				t.Errorf("TTL %d, stored %d s later: counted before: %d, soon after: %d", ttl, step*ttl/100, before, then)
			}
		}
	}
}
