// Expiry: when the bytes of a segment expire, by bins, so that nobody looks at its items.
//
//	born      width
//	|--bin 0--|--bin 1--| ... |--bin 6--|-- bin 7: later, or never
//
// Items whose TTLs are alike are in the same segments: those of a class. So most of a segment expires
// at about the same time, and its bins are narrow.

package cache

import "math"

const (
	bins    = 8
	classes = 5
)

// classTTL has the longest TTL of each class but the first and last, in seconds: class 0 is for items
// that do not expire.
var classTTL = [classes - 1]uint32{0, 16, 64, 256}

// classOf returns the class of what expires in so many seconds, or never if that is 0.
func classOf(seconds uint32) int {
	for class, ttl := range classTTL {
		if seconds <= ttl {
			return class
		}
	}
	return classes - 1
}

// expiry has the live bytes of a segment by when they expire.
type expiry struct {
	born  uint32
	width uint32
	bins  [bins]uint32
}

// begin empties the bins, for items whose TTLs are like that of an item that is about to be added.
func (x *expiry) begin(now, seconds uint32) {
	longest := 2 * uint64(seconds)
	if class := classOf(seconds); class < classes-1 {
		longest = uint64(classTTL[class]) * 3 / 2
	}
	*x = expiry{born: now, width: uint32(min(longest/(bins-1)+1, math.MaxUint32/bins))}
}

func (x *expiry) bin(expires uint32) *uint32 {
	if expires == 0 {
		return &x.bins[bins-1]
	}
	return &x.bins[min((max(expires, x.born)-x.born)/x.width, bins-1)]
}

// note adds bytes that expire at that second.
func (x *expiry) note(expires uint32, bytes int) { *x.bin(expires) += uint32(bytes) }

// forget removes what note added. A reader may have given the item another time since; then the bytes are
// those of the earliest bins.
func (x *expiry) forget(expires uint32, bytes int) {
	left := uint32(bytes)
	take := func(bin *uint32) {
		n := min(*bin, left)
		*bin -= n
		left -= n
	}
	take(x.bin(expires))
	for i := 0; left > 0 && i < bins; i++ {
		take(&x.bins[i])
	}
}

// passed returns how many bytes have surely expired.
func (x *expiry) passed(now uint32) (bytes uint32) {
	for i, n := range x.bins[:bins-1] {
		if uint64(now) < uint64(x.born)+uint64(i+1)*uint64(x.width) {
			break
		}
		bytes += n
	}
	return bytes
}
