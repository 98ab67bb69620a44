// Expiry: a histogram of a segment's live bytes by expiry time; it saves a scan of the items.
//
//	born      width
//	|--bin 0--|--bin 1--| ... |--bin 6--|-- bin 7: later, or never
//
// A segment holds items of one TTL class. So most of a segment expires at about the same time, and
// its bins are narrow.

package cache

import "math"

const (
	bins    = 8
	classes = 5
)

// classTTL has the longest TTL of each class but the last, in seconds. Class 0 is for items that do
// not expire: their TTL is 0.
var classTTL = [classes - 1]uint32{0, 16, 64, 256}

// classOf returns the class of a TTL in seconds; 0 means that the item does not expire.
func classOf(seconds uint32) int {
	for class, ttl := range classTTL {
		if seconds <= ttl {
			return class
		}
	}
	return classes - 1
}

// expiry is the histogram of a segment's live bytes.
type expiry struct {
	born  uint32
	width uint32
	bins  [bins]uint32
}

// begin empties the bins, and sizes them by the TTL of the first item, in seconds. The bins span
// half as much again as the longest TTL of its class, for items that are stored later. The last
// class has no longest TTL: there they span twice the TTL.
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

// add counts bytes that expire at that second.
func (x *expiry) add(expires uint32, bytes int) { *x.bin(expires) += uint32(bytes) }

// remove subtracts bytes that add counted. A reader may have changed the item's expiry since, so
// that its bin has too few bytes. Then remove takes the rest from the earliest bins.
func (x *expiry) remove(expires uint32, bytes int) {
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

// passed returns the bytes in bins that have ended. The bytes have expired, unless a
// read has restarted the TTL of their item (Options.Sliding).
func (x *expiry) passed(now uint32) (bytes uint32) {
	for i, n := range x.bins[:bins-1] {
		if uint64(now) < uint64(x.born)+uint64(i+1)*uint64(x.width) {
			break
		}
		bytes += n
	}
	return bytes
}
