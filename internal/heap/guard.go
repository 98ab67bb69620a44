// Guards: which blocks are guarded.
//
// One block in n is guarded, whatever its size, and whatever was before: guards are
// independent of samples, and both share one countdown. Each block counts its bytes and
// extra ones. A countdown that ends is an event, which has probability
// 1-exp(-(size+extra)/rate). By extra this is at least the probability that a block is
// sampled, guarded or both; picked then draws which of the three it is, or nothing. So each
// block is guarded with probability 1/n and sampled with probability 1-exp(-size/rate),
// exactly, and records have the same weight with guards and without.
//
// Caches have served the block by then. If it is to be guarded, and there is a run for it,
// the block is freed again.

package heap

import (
	"fmt"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/freehold-go/freehold/internal/arg"
	"github.com/freehold-go/freehold/internal/mode"
	"github.com/freehold-go/freehold/internal/monitor"
	"github.com/freehold-go/freehold/internal/vm"
)

// GuardsPerSecond is the budget of FREEHOLD_DEBUG=guard=1/N.
const GuardsPerSecond = 500

// countdown is what caches count down to events by.
type countdown struct {
	extra atomic.Int64 // bytes that each block counts more
	rate  atomic.Int64 // of the gaps between events, in bytes; 0 if nothing is counted
}

var events countdown

const (
	// The rate of the countdown where there are no samples: sizes count as nothing then.
	guardRate = 1 << 40

	// The extra bytes, in rates, that no gap exceeds: the logarithm of random has 2^-53 at
	// least.
	maxExtraRates = 64
)

// guarding is which blocks are guarded. sampling.mu is held while it changes.
var guarding struct {
	oneIn  atomic.Int64 // 0 guards none
	budget tokenBucket
}

func init() { // after that of fast_amd64.go
	n, sampled, on := mode.OneIn("guard")
	if !on {
		return
	}
	if vm.GoBacked {
		fmt.Fprintln(os.Stderr, "freehold: FREEHOLD_DEBUG: guard: there are no guards in this build, whose memory is Go's own")
		return
	}
	perSecond := 0
	if sampled {
		perSecond = GuardsPerSecond
	}
	SetGuardRate(n, perSecond)
	if err := monitor.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "freehold: FREEHOLD_DEBUG: guard: faults are not explained: %v\n", err)
	}
}

// CanGuard reports whether this build can make memory inaccessible.
const CanGuard = !vm.GoBacked

// SetGuardRate has one block in n guarded, none if n is 0, from now on, and perSecond at
// most, or without a bound if that is 0. It returns the old n. It drains the caches of all
// heaps, as SetSampleRate does.
func SetGuardRate(n, perSecond int) (was int) {
	arg.AtLeast("track.SetGuardRate", "n", n, 0)
	arg.AtLeast("track.SetGuardRate", "perSecond", perSecond, 0)
	if !CanGuard {
		return 0
	}
	sampling.mu.Lock()
	defer sampling.mu.Unlock()
	was = int(guarding.oneIn.Swap(int64(n)))
	guarding.budget.set(perSecond)
	recount()
	return was
}

// recount has the caches count anew, after sampling or guarding changed. sampling.mu is
// held.
func recount() {
	rate, extra := sampling.rate.Load(), int64(0)
	if n := guarding.oneIn.Load(); n > 0 {
		if rate == 0 {
			rate = guardRate
		}
		// Rounded up: the probability of an event may be too large, but not too small.
		rates := min(-math.Log1p(-1/float64(n)), maxExtraRates)
		extra = int64(math.Ceil(rates * float64(rate)))
	}
	events.extra.Store(extra)
	events.rate.Store(rate)
	countInAssembly(rate > 0)
	EachOpen(func(h *Heap) { h.restartCountdowns() })
}

// tryPick is picked for a block that no cache has counted, if chance has it.
func (h *Heap) tryPick(b []byte, align int) []byte {
	if events.rate.Load() != 0 {
		return h.tryAtCount(b, align)
	}
	return b
}

// tryAtCount is tryPick apart, so that tryPick is inlined.
func (h *Heap) tryAtCount(b []byte, align int) []byte {
	if rate := events.rate.Load(); rate != 0 && gapBelow(int64(userBytes(uintptr(len(b))))+events.extra.Load(), rate) {
		return h.picked(b, align)
	}
	return b
}

// picked samples b, a block that was just allocated and at which a countdown ended, or
// returns a guarded block in its place, or both.
func (h *Heap) picked(b []byte, align int) []byte {
	n := guarding.oneIn.Load()
	if n == 0 {
		h.sample(b)
		return b
	}
	if h.unsampled {
		return b
	}
	size := int(userBytes(uintptr(len(b))))
	guarded, sampled := 1/float64(n), chance(int64(size), sampling.rate.Load())
	// An event is made of three parts: guarded; sampled only; neither.
	in := random() * chance(int64(size)+events.extra.Load(), events.rate.Load())
	guard := in <= guarded
	sample := in-guarded <= sampled*(1-guarded)
	if guard {
		sample = random() <= sampled
		if g := h.guard(size, align); g != nil {
			h.free(b) // the engine's: b may end with a red zone
			b = g
		}
	}
	if sample {
		h.sample(b)
	}
	return b
}

// chance returns the probability that a gap is below size.
func chance(size, rate int64) float64 {
	switch {
	case rate == 0:
		return 0
	case rate == 1:
		return 1
	}
	return -math.Expm1(-float64(size) / float64(rate))
}

// guard returns a guarded block, or nil if there is none.
func (h *Heap) guard(size, align int) []byte {
	var b []byte
	if guarding.budget.take() {
		b = h.newGuarded(uintptr(size), uintptr(align))
	}
	if b == nil {
		h.theGuards().skipped.Add(1)
	}
	return b
}

// tokenBucket bounds how many blocks are guarded in a second: a bucket that fills with tokens
// at that rate, up to those of a second, and from which each guard takes one.
type tokenBucket struct {
	mu        sync.Mutex
	perSecond int // 0 is no bound
	tokens    float64
	at        time.Time // when tokens was right
}

// now is the clock of the bucket. Tests have their own.
var now = time.Now

func (b *tokenBucket) set(perSecond int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.perSecond, b.tokens, b.at = perSecond, float64(perSecond), now()
}

// take takes a token. It reports false if there is none.
func (b *tokenBucket) take() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.perSecond == 0 {
		return true
	}
	t := now()
	b.tokens = min(b.tokens+t.Sub(b.at).Seconds()*float64(b.perSecond), float64(b.perSecond))
	b.at = t
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
