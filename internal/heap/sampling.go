// Sampling: which blocks are sampled.
//
// Of the bytes that a heap hands out, about one in rate is picked, and the block that
// has it is sampled: its record is in samples.go. A block of size bytes is sampled with
// probability 1-exp(-size/rate), whatever was sampled before, so a record represents the
// inverse of that many blocks, and the sums are right on average. (As in tcmalloc and in
// Go's memory profile.)
//
// A cache counts the bytes down that Alloc takes from it, from a random start to the next
// sample (gap). In assembly these are functions of their own, in use while the rate is
// not 0: see fast_amd64.go. Where no cache has served a block, the block gets a gap of
// its own, which has the same distribution.

package heap

import (
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/mode"
	"github.com/freehold-go/freehold/internal/owners"
)

// DefaultSampleRate is that of Go's memory profile, in bytes.
const DefaultSampleRate = 512 << 10

// maxSampleRate keeps gaps within their type.
const maxSampleRate = 1 << 48

var sampling struct {
	rate   atomic.Int64  // bytes per sample on average; 1 samples each block, 0 none
	random atomic.Uint64 // the state of the generator
	mu     sync.Mutex    // held while the rate changes
}

func init() { // after that of fast_amd64.go
	sampling.random.Store(rand.Uint64())
	if rate, on := mode.Int("profile", 1, DefaultSampleRate); on {
		SetSampleRate(rate)
	} else if owners.On() {
		SetSampleRate(1)
	}
}

// SampleRate returns the rate.
func SampleRate() int { return int(sampling.rate.Load()) }

// SetSampleRate sets the rate for the allocations after it, and returns the old one. It
// drains the caches of all heaps, whose countdowns are for the old one.
func SetSampleRate(rate int) (was int) {
	arg.AtLeast("track.SetSampleRate", "bytes", rate, 0)
	sampling.mu.Lock()
	defer sampling.mu.Unlock()
	was = int(sampling.rate.Swap(min(int64(rate), maxSampleRate)))
	if was == SampleRate() {
		return was
	}
	recount()
	return was
}

// restartCountdowns empties the caches. New ones begin with new countdowns.
func (h *Heap) restartCountdowns() {
	h.pages.Scavenging.Lock()
	defer h.pages.Scavenging.Unlock()
	if !h.pages.Closed.Load() && h.hasCaches() {
		h.drain()
	}
}

// gap returns how many bytes are not sampled before the next one that is: a number with
// exponential distribution around rate.
func gap(rate int64) int64 {
	if rate <= 1 {
		return 0
	}
	return int64(-math.Log(random()) * float64(rate))
}

// gapBelow is gap(rate) < size in less time.
func gapBelow(size, rate int64) bool {
	if rate <= 1 {
		return size > 0
	}
	u := random()
	// No logarithm is needed for most sizes: -Log(u) >= 1-u.
	return (1-u)*float64(rate) < float64(size) && int64(-math.Log(u)*float64(rate)) < size
}

// random returns a number in (0, 1].
func random() float64 {
	// Splitmix64, by Steele, Lea and Flood, 2014: one atomic word, and it may be seeded.
	x := sampling.random.Add(0x9e3779b97f4a7c15)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return float64(x>>11+1) / (1 << 53)
}

// due counts size bytes down, which c has just served, and reports whether the
// countdown ended: the block may be sampled or guarded. The slot is held.
func (c *cache) due(size int) bool { return events.rate.Load() != 0 && c.countDown(size) }

// countDown is due apart, so that due is inlined.
func (c *cache) countDown(size int) bool {
	if c.left -= int64(userBytes(uintptr(size))) + events.extra.Load(); c.left >= 0 {
		return false
	}
	c.left = gap(events.rate.Load())
	return true
}

// trySample samples b, which no cache has counted, if chance has it.
func (h *Heap) trySample(b []byte) {
	if sampling.rate.Load() != 0 {
		h.tryAtRate(b)
	}
}

// tryAtRate is trySample apart, so that trySample is inlined.
func (h *Heap) tryAtRate(b []byte) {
	rate := sampling.rate.Load()
	if size := spanAt(addrOf(b)).userBytes(uintptr(len(b))); rate != 0 && gapBelow(int64(size), rate) {
		h.sample(b)
	}
}
